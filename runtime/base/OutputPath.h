// Where a file may be written.
#pragma once

#include <string>

#include "runtime/base/Status.h"

namespace strata {

/// Outputs are moved to their names when they are complete, which would replace a device or a pipe
/// that stands there. Passes what is absent or a regular file; links are followed. Errors:
/// InvalidArgument (something else stands there).
Status checkOutputPath(const std::string &path);

} // namespace strata
