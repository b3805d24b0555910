#include "runtime/checkpoint/LfsPointer.h"

#include <string_view>

namespace strata {

Status refuseLfsPointer(const MappedFile &file) {
  // The first line of every pointer, by the Git LFS specification.
  constexpr std::string_view firstLine = "version https://git-lfs.github.com/spec/v1\n";
  std::string_view text(reinterpret_cast<const char *>(file.bytes().data()), file.bytes().size());
  if (!text.starts_with(firstLine))
    return Status::ok();
  return makeError(StatusCode::InvalidData,
                   "'{}' is a Git LFS pointer of {} bytes, not the file itself; run 'git lfs pull' "
                   "in its repository",
                   file.path(), text.size());
}

} // namespace strata
