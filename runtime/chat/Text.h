// A string that knows, byte for byte, whether the template wrote it or its input did.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace strata::chat {

enum class Origin : bool { Input, Template };

/// UTF-8 bytes with their origins. Neighbouring runs differ in origin.
class Text {
public:
  struct Run {
    size_t end; ///< Byte offset; a run begins where the one before ends.
    Origin origin;
  };

  Text() = default;
  Text(std::string bytes, Origin origin);

  const std::string &bytes() const { return bytes_; }
  const std::vector<Run> &runs() const { return runs_; }
  size_t size() const { return bytes_.size(); }

  void append(std::string_view bytes, Origin origin);
  void append(const Text &other) { append(other, 0, other.size()); }
  void append(const Text &other, size_t begin, size_t end); ///< Bytes begin..end of another text.
  Text slice(size_t begin, size_t end) const;

  Origin originAt(size_t offset) const; ///< offset < size()

  /// Escaped for HTML already (Jinja's Markup): adding to it escapes what is added.
  bool markup = false;

private:
  size_t runAt(size_t offset) const;

  std::string bytes_;
  std::vector<Run> runs_;
};

using TextPtr = std::shared_ptr<const Text>;

} // namespace strata::chat
