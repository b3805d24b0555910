// A GGUF file, or the parts of a split one, as a Checkpoint.
#pragma once

#include "runtime/checkpoint/Checkpoint.h"

namespace strata {

/// `path` is the file, or the first part of a model split into `base-00001-of-0000N.gguf`; the
/// other parts are found beside it.
Result<std::unique_ptr<Checkpoint>> openGgufCheckpoint(const std::string &path);

} // namespace strata
