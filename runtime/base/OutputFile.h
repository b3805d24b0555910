// A file that appears under its name whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/Status.h"

namespace strata {

/// Outputs are moved to their names when they are complete, which would replace a device or a pipe
/// that stands there. Passes what is absent or a regular file; links are followed. Errors:
/// InvalidArgument (something else stands there).
Status checkOutputPath(const std::string &path);

/// Until publish() the bytes are a file without a name, where the file system has those: a process
/// that is killed leaves nothing behind. Elsewhere they have a temporary name in the same folder,
/// which the destructor removes. Used from one thread.
class OutputFile {
public:
  /// A file to be published in `folder`. Errors: NotFound (no such folder), Internal (I/O).
  static Result<std::unique_ptr<OutputFile>> createIn(const std::string &folder);
  /// A file to be published as `path`. Errors: those of checkOutputPath() and createIn().
  static Result<std::unique_ptr<OutputFile>> create(const std::string &path);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  /// Errors: Internal (I/O, with the system's reason).
  Status writeAt(uint64_t offset, std::span<const std::byte> bytes);
  /// At the end of what append() wrote.
  Status append(std::span<const std::byte> bytes);

  /// Syncs and moves the file to `path`, in the folder that it was created for; replaces what
  /// stands there. A symbolic link keeps its place and gets a new target's content. Once, as the
  /// last call. Errors: Internal (I/O).
  Status publish(const std::string &path);

private:
  OutputFile(std::string folder, int descriptor, std::string temporary)
      : folder_(std::move(folder)), descriptor_(descriptor), temporary_(std::move(temporary)) {}

  std::string folder_;
  int descriptor_;
  std::string temporary_; ///< Empty: without a name.
  uint64_t end_ = 0;      ///< Of what append() wrote.
};

/// The folder that `path` lies in; symbolic links at `path` are followed.
std::string folderOf(const std::string &path);

} // namespace strata
