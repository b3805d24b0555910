// Text from a file, for commands that take --text-file.
#pragma once

#include <string>

#include "runtime/base/Status.h"

namespace strata::run {

/// The bytes of `path`. Errors: NotFound, InvalidArgument (more than 1 GiB, the tokenizer's limit).
Result<std::string> readTextFile(const std::string &path);

} // namespace strata::run
