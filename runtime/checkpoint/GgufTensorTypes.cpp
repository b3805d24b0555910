#include "runtime/checkpoint/GgufTensorTypes.h"

#include <array>
#include <string>

#include "runtime/checkpoint/WeightTypeTable.h"
#include "runtime/checkpoint/WeightTypes.h"

namespace strata {
namespace {

/// By id; empty where the id is retired.
constexpr std::array<std::string_view, 41> typeNames = {
    "F32",     "F16",   "Q4_0",   "Q4_1",  "",      "",       "Q5_0", "Q5_1",    "Q8_0",
    "Q8_1",    "Q2_K",  "Q3_K",   "Q4_K",  "Q5_K",  "Q6_K",   "Q8_K", "IQ2_XXS", "IQ2_XS",
    "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS", "I8",   "I16",     "I32",
    "I64",     "F64",   "IQ1_M",  "BF16",  "",      "",       "",     "TQ1_0",   "TQ2_0",
    "",        "",      "",       "MXFP4", "NVFP4"};

} // namespace

Status unreadableTensorType(std::string_view tensor, uint32_t id) {
  if (id >= typeNames.size())
    return makeError(StatusCode::InvalidData,
                     "tensor '{}' has type {}, which is not known; the file is damaged or newer "
                     "than this build",
                     tensor, id);
  if (typeNames[id].empty())
    return makeError(StatusCode::InvalidData,
                     "tensor '{}' has type {}, which GGUF has retired; convert the model again",
                     tensor, id);
  std::string readable;
  for (const WeightType &type : weightTypes())
    if (type.ggufId != noGgufId)
      readable += fmt::format("{}{}", readable.empty() ? "" : ", ", type.name);
  return makeError(StatusCode::Unimplemented,
                   "tensor '{}' has type {} ({}), which is not read; types read: {}", tensor,
                   typeNames[id], id, readable);
}

} // namespace strata
