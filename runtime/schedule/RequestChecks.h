// What a request's sampling may ask for.
#pragma once

#include <cstdint>

#include "runtime/base/Status.h"
#include "runtime/schedule/Request.h"

namespace strata {

/// Errors: InvalidArgument, naming the parameter, what was found and what is allowed.
Status checkSampling(const Request &request, uint32_t vocabularySize);

} // namespace strata
