// What strata-compile's options hold, out of the words that people write.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/ImportOptions.h"
#include "runtime/base/Status.h"

namespace strata::compile {

/// `cpu,cpu:x86-64-v3:8GiB`. Errors: those of parseDevice.
Result<std::vector<ImportDevice>> parseDevices(const std::string &text);

/// `24,24`: decoder layers a stage; empty for `auto`. Errors: InvalidArgument.
Result<std::vector<int64_t>> parseSplit(const std::string &text);

/// `r1s1,r8s4`: rows and sequences of each bucket, flat. Errors: InvalidArgument (no number of at
/// least 1, more sequences than rows or than `maxSequences`, a bucket twice).
Result<std::vector<int64_t>> parseBuckets(const std::string &text, int64_t maxSequences);

/// `128`. Errors: InvalidArgument.
Result<int64_t> parseBatchTokens(const std::string &text);

/// Checks the type of a cache: f32, f16 or bf16. Errors: Unimplemented (int8), InvalidArgument.
Status checkCacheType(const std::string &flag, const std::string &type);

/// A name holds no control characters. Errors: InvalidArgument.
Status checkModelName(const std::string &name);

/// Errors: InvalidArgument, listing the weight types.
Status checkWeightType(const std::string &type);

/// Errors: Unimplemented (int8), InvalidArgument.
Status checkActivations(const std::string &type);

} // namespace strata::compile
