// What a text of the dialect must keep to before MLIR's parser, which recurses, may read it.
#pragma once

#include <string>

#include "runtime/base/Status.h"

namespace strata {

/// Refuses a text that could overflow the parser's stack or make it take all memory: brackets or
/// aliases nested more than 256 deep, results past the 65,536th, and affine maps and sets, whose
/// expressions need no brackets to nest. Errors: InvalidData (these,
/// and more than 1 GiB), and those of MappedFile::open().
Status checkModelText(const std::string &path);

} // namespace strata
