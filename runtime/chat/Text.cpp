#include "runtime/chat/Text.h"

#include <algorithm>

namespace strata::chat {

Text::Text(std::string bytes, Origin origin) : bytes_(std::move(bytes)) {
  if (!bytes_.empty())
    runs_.push_back({bytes_.size(), origin});
}

size_t Text::runAt(size_t offset) const {
  auto run =
      std::upper_bound(runs_.begin(), runs_.end(), offset,
                       [](size_t offset, const Run &candidate) { return offset < candidate.end; });
  return size_t(run - runs_.begin());
}

Origin Text::originAt(size_t offset) const { return runs_[runAt(offset)].origin; }

void Text::append(std::string_view bytes, Origin origin) {
  if (bytes.empty())
    return;
  bytes_.append(bytes);
  if (!runs_.empty() && runs_.back().origin == origin)
    runs_.back().end = bytes_.size();
  else
    runs_.push_back({bytes_.size(), origin});
}

void Text::append(const Text &other, size_t begin, size_t end) {
  for (size_t run = other.runAt(begin); begin < end; ++run) {
    size_t stop = std::min(end, other.runs_[run].end);
    append(std::string_view(other.bytes_).substr(begin, stop - begin), other.runs_[run].origin);
    begin = stop;
  }
}

Text Text::slice(size_t begin, size_t end) const {
  Text part;
  part.append(*this, begin, end);
  part.markup = markup;
  return part;
}

} // namespace strata::chat
