// Git LFS pointers: what a clone holds where the large file itself was not fetched.
#pragma once

#include "runtime/base/MappedFile.h"

namespace strata {

/// InvalidData, with the remedy, where `file` is a pointer and not the file that it stands for.
Status refuseLfsPointer(const MappedFile &file);

} // namespace strata
