#include "runtime/stage/RandomWeights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "codegen/kernels/Signatures.h"
#include "runtime/base/CheckedMath.h"
#include "runtime/checkpoint/WeightTypeTable.h"
#include "runtime/plan/PlanAccess.h"
#include "runtime/plan/WeightPlaces.h"

namespace strata {
namespace {

/// splitmix64 (Steele, Lea, Flood 2014).
class Random {
public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

private:
  uint64_t state_;
};

/// What a block's values must satisfy.
struct Range {
  float least; ///< Of the largest magnitude in the block.
  float most;  ///< Of every magnitude.
  int sign;    ///< Of every value; 0: any.

  bool admits(std::span<const float> values) const {
    float largest = 0;
    for (float value : values) {
      if (!std::isfinite(value) || std::fabs(value) > most ||
          (sign != 0 && value * float(sign) < least))
        return false;
      largest = std::max(largest, std::fabs(value));
    }
    return largest >= least;
  }
};

constexpr uint32_t templateCount = 1024;
constexpr uint32_t mostDraws = 4'000'000;

// Draws random bytes and keeps what decodes to values in range. That needs no knowledge of where a
// type keeps its scales, so a type added to the table works here as it is; a few thousand draws
// find the blocks of the widest types.
Result<std::vector<uint8_t>> drawBlocks(const WeightType &type, const Range &range, Random random) {
  std::vector<uint8_t> blocks;
  std::vector<uint8_t> block(alignUp(type.blockBytes, 8));
  std::vector<float> values(type.blockElements);
  uint32_t draws = 0;
  for (uint32_t found = 0; found < templateCount && draws < mostDraws; ++draws) {
    for (size_t i = 0; i < block.size(); i += 8) {
      uint64_t bits = random.next();
      std::memcpy(&block[i], &bits, 8);
    }
    type.dequantise(block.data(), values.data());
    if (!range.admits(values))
      continue;
    blocks.insert(blocks.end(), block.begin(), block.begin() + type.blockBytes);
    ++found;
  }
  if (blocks.empty())
    return makeError(StatusCode::Unimplemented,
                     "no block of type '{}' with values of {} to {} was found in {} draws",
                     type.name, range.least, range.most, draws);
  return blocks;
}

} // namespace

Status fillRandomWeight(const fb::Weight &weight, uint64_t seed, bool isNegative,
                        std::span<std::byte> bytes) {
  const WeightType *type = findWeightType(text(weight.type()));
  if (!type || bytes.size() > weight.bytes() || bytes.size() % type->blockBytes != 0)
    return makeError(StatusCode::Internal, "weight '{}' of type '{}' cannot be filled",
                     text(weight.name()), text(weight.type()));
  bool isVector = count(weight.shape()) == 1;
  uint64_t columns = weight.shape()->Get(weight.shape()->size() - 1);
  float most = isVector ? 1.5f : 2.0f / std::sqrt(float(columns));
  int sign = isNegative ? -1 : isVector && type->isPlain();
  Range range{isVector ? 0.5f : most / 16, most, sign};
  // Of a table the place of layer 0, whatever layers are held.
  uint64_t place = weight.offset() - weight.first_layer() * layerStride(weight);
  Random random(seed ^ (uint64_t(weight.segment()) << 40) ^ place);
  STRATA_ASSIGN_OR_RETURN(std::vector<uint8_t> blocks, drawBlocks(*type, range, random));
  uint64_t choices = blocks.size() / type->blockBytes;
  for (size_t at = 0; at < bytes.size(); at += type->blockBytes)
    std::memcpy(&bytes[at], &blocks[random.next() % choices * type->blockBytes], type->blockBytes);
  return {};
}

std::vector<bool> negativeWeights(const fb::Stage &stage) {
  std::vector<bool> isNegative(count(stage.weights()));
  for (const fb::Forward *forward : *stage.forwards())
    for (uint32_t c = 0; c < count(forward->commands()); ++c) {
      const fb::Command &command = *forward->commands()->Get(c);
      const KernelSignature &signature =
          *findSignature(text(stage.kernels()->Get(command.kernel())->name()));
      for (uint32_t i = 0; i < signature.slots.size(); ++i)
        if (signature.slots[i].negative)
          isNegative[command.slots()->Get(i)->object()] = true;
    }
  return isNegative;
}

} // namespace strata
