// The names of GGUF's tensor types, for refusing one by name.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/Status.h"

namespace strata {

/// The error for a tensor whose type id is not in the weight type table: Unimplemented where GGUF
/// defines it, InvalidData where it is retired or unknown.
Status unreadableTensorType(std::string_view tensor, uint32_t id);

} // namespace strata
