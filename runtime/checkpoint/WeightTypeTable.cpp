#include "runtime/checkpoint/WeightTypeTable.h"

#include <array>

#include "runtime/base/CheckedMath.h"
#include "runtime/checkpoint/WeightTypes.h"

namespace strata {
namespace {

template <class List> struct TableOf;
template <class... Types> struct TableOf<std::tuple<Types...>> {
  static constexpr std::array<WeightType, sizeof...(Types)> rows = {WeightType{
      Types::name, Types::blockElements, Types::blockBytes, Types::ggufId, &Types::dequantise}...};
};

} // namespace

std::optional<uint64_t> WeightType::bytesFor(uint64_t elements) const {
  if (elements % blockElements != 0)
    return std::nullopt;
  return checkedMul<uint64_t>(elements / blockElements, blockBytes);
}

std::span<const WeightType> weightTypes() { return TableOf<WeightTypeList>::rows; }

const WeightType *findWeightType(std::string_view name) {
  for (const WeightType &type : weightTypes())
    if (type.name == name)
      return &type;
  return nullptr;
}

const WeightType *findWeightTypeByGgufId(uint32_t id) {
  for (const WeightType &type : weightTypes())
    if (type.ggufId == id && id != noGgufId)
      return &type;
  return nullptr;
}

void dequantiseRow(const WeightType &type, const uint8_t *source, uint64_t elements, float *out) {
  for (uint64_t block = 0; block < elements / type.blockElements; ++block)
    type.dequantise(source + block * type.blockBytes, out + block * type.blockElements);
}

} // namespace strata
