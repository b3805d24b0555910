#include "runtime/base/OutputPath.h"

#include <sys/stat.h>

namespace strata {

Status checkOutputPath(const std::string &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode))
    return Status::ok(); // what cannot be looked at is reported by whoever writes it
  return makeError(StatusCode::InvalidArgument,
                   "output '{}' is {}, which the finished file would replace; name a file", path,
                   S_ISDIR(info.st_mode) ? "a folder" : "a device or a pipe");
}

} // namespace strata
