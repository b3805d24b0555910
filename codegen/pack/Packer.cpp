#include "codegen/pack/Packer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/base/MappedFile.h"

namespace strata {
namespace {

/// Values that are converted or dequantised at a time: bounds the memory of packing.
constexpr uint64_t pieceElements = 1 << 16;

std::string shapeText(std::span<const uint64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

const uint8_t *bytesOf(const Tensor &tensor) {
  return reinterpret_cast<const uint8_t *>(tensor.bytes.data());
}

/// Streams `tensor` as F32, `plus` added.
Status convertToFloat(const Tensor &tensor, uint64_t elements, float plus, SegmentSink &sink) {
  std::vector<float> piece(std::min(elements, pieceElements));
  const WeightType &type = *tensor.type;
  for (uint64_t begin = 0; begin < elements; begin += pieceElements) {
    uint64_t count = std::min(pieceElements, elements - begin);
    const uint8_t *from = bytesOf(tensor) + begin / type.blockElements * type.blockBytes;
    dequantiseRow(type, from, count, piece.data());
    if (plus != 0)
      for (float &value : piece)
        value += plus;
    STRATA_RETURN_IF_ERROR(sink.write(std::as_bytes(std::span(piece.data(), count))));
  }
  return Status::ok();
}

double frequency(const RopeFrequencies &rope, uint64_t pair) {
  return std::pow(rope.theta, -2.0 * static_cast<double>(pair) / static_cast<double>(rope.width));
}

double llama3(const RopeFrequencies &rope, double frequency) {
  double wavelength = 2 * std::numbers::pi / frequency;
  double low = rope.originalContext / rope.lowFrequencyFactor;
  double high = rope.originalContext / rope.highFrequencyFactor;
  if (wavelength < high)
    return frequency;
  if (wavelength > low)
    return frequency / rope.factor;
  double smooth = (rope.originalContext / wavelength - rope.lowFrequencyFactor) /
                  (rope.highFrequencyFactor - rope.lowFrequencyFactor);
  return frequency * ((1 - smooth) / rope.factor + smooth);
}

double yarn(const RopeFrequencies &rope, double frequency, uint64_t pair) {
  double width = static_cast<double>(rope.width);
  auto correction = [&](double rotations) {
    return width * std::log(rope.originalContext / (2 * std::numbers::pi * rotations)) /
           (2 * std::log(rope.theta));
  };
  double low = std::max(0.0, std::floor(correction(rope.betaFast)));
  double high = std::min(width - 1, std::ceil(correction(rope.betaSlow)));
  double ramp =
      std::clamp((static_cast<double>(pair) - low) / std::max(0.001, high - low), 0.0, 1.0);
  return frequency / rope.factor * ramp + frequency * (1 - ramp);
}

} // namespace

Status checkRecipe(const WeightRecipe &recipe, const Checkpoint &checkpoint) {
  if (recipe.source.empty())
    return Status::ok();
  const Tensor *tensor = checkpoint.find(recipe.source);
  if (!tensor)
    return makeError(StatusCode::NotFound, "weight '{}' needs tensor '{}', which '{}' lacks",
                     recipe.name, recipe.source, checkpoint.path());
  if (tensor->shape != recipe.shape)
    return makeError(StatusCode::InvalidData, "weight '{}' is {} but tensor '{}' is {}",
                     recipe.name, shapeText(recipe.shape), recipe.source, shapeText(tensor->shape));
  if (tensor->type != recipe.type && recipe.type->name != "f32")
    return makeError(StatusCode::InvalidData,
                     "weight '{}' is {} but tensor '{}' is {}; only f32 is converted to",
                     recipe.name, recipe.type->name, recipe.source, tensor->type->name);
  return Status::ok();
}

Status packWeight(const WeightRecipe &recipe, const Checkpoint *checkpoint, SegmentSink &sink) {
  const Tensor *tensor = nullptr;
  if (!recipe.source.empty()) {
    if (!checkpoint)
      return makeError(StatusCode::InvalidArgument,
                       "weight '{}' needs tensor '{}' but there is no checkpoint", recipe.name,
                       recipe.source);
    STRATA_RETURN_IF_ERROR(checkRecipe(recipe, *checkpoint));
    tensor = checkpoint->find(recipe.source);
  }
  if (recipe.computed) {
    std::vector<float> divisors;
    if (tensor) {
      divisors.resize(recipe.shape[0]);
      dequantiseRow(*tensor->type, bytesOf(*tensor), divisors.size(), divisors.data());
      auto wrong = std::ranges::find_if(
          divisors, [](float divisor) { return !(divisor > 0) || std::isinf(divisor); });
      if (wrong != divisors.end())
        return makeError(StatusCode::InvalidData,
                         "tensor '{}' divides rope frequency {} by {}; divisors are above 0",
                         recipe.source, wrong - divisors.begin(), *wrong);
    }
    std::vector<float> values = ropeFrequencies(*recipe.computed, divisors);
    return sink.write(std::as_bytes(std::span(values)));
  }
  uint64_t elements = 1;
  for (uint64_t dimension : recipe.shape)
    elements *= dimension;
  Status status = tensor->type == recipe.type && recipe.plus == 0
                      ? sink.write(tensor->bytes)
                      : convertToFloat(*tensor, elements, recipe.plus, sink);
  // A mapped tensor that was read is resident: without this, compiling would take the whole file.
  releasePages(tensor->bytes);
  return status;
}

std::vector<float> ropeFrequencies(const RopeFrequencies &rope, std::span<const float> divisors) {
  std::vector<float> values(rope.width / 2);
  for (uint64_t pair = 0; pair < values.size(); ++pair) {
    double value = frequency(rope, pair);
    if (!divisors.empty())
      value /= static_cast<double>(divisors[pair]);
    else if (rope.scaling == "linear")
      value /= rope.factor;
    else if (rope.scaling == "llama3")
      value = llama3(rope, value);
    else if (rope.scaling == "yarn")
      value = yarn(rope, value, pair);
    values[pair] = static_cast<float>(value);
  }
  return values;
}

} // namespace strata
