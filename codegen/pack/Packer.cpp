#include "codegen/pack/Packer.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

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

/// Streams elements of one tensor as the recipe wants them.
class Source {
public:
  Source(const WeightRecipe &recipe, const Tensor &tensor, SegmentSink &sink)
      : recipe_(recipe), tensor_(tensor), sink_(sink) {}

  /// [begin, begin + count), whole blocks.
  Status copy(uint64_t begin, uint64_t count) {
    const WeightType &type = *tensor_.type;
    if (tensor_.type == recipe_.type && recipe_.plus == 0 && !recipe_.isNegativeExponential)
      return sink_.write(tensor_.bytes.subspan(begin / type.blockElements * type.blockBytes,
                                               count / type.blockElements * type.blockBytes));
    return convert(begin, begin + count);
  }

private:
  Status convert(uint64_t begin, uint64_t end) {
    const WeightType &type = *tensor_.type;
    piece_.resize(std::min(end - begin, pieceElements));
    for (; begin < end; begin += piece_.size()) {
      uint64_t count = std::min(pieceElements, end - begin);
      dequantiseRow(type, bytesOf(tensor_) + begin / type.blockElements * type.blockBytes, count,
                    piece_.data());
      for (float &value : std::span(piece_.data(), count)) {
        if (recipe_.isNegativeExponential)
          value = static_cast<float>(-std::exp(static_cast<double>(value)));
        value += recipe_.plus;
      }
      STRATA_RETURN_IF_ERROR(sink_.write(std::as_bytes(std::span(piece_.data(), count))));
    }
    return Status::ok();
  }

  const WeightRecipe &recipe_;
  const Tensor &tensor_;
  SegmentSink &sink_;
  std::vector<float> piece_;
};

uint64_t product(std::span<const uint64_t> shape) {
  uint64_t elements = 1;
  for (uint64_t dimension : shape)
    elements *= dimension;
  return elements;
}

/// What each source tensor holds: `rows` rows of `columns`, a vector being one row. `taken` rows
/// are used together.
struct SourceShape {
  uint64_t rows;
  uint64_t columns;
  uint64_t taken;
};

SourceShape sourceShape(const WeightRecipe &recipe) {
  uint64_t columns = recipe.shape.back() / recipe.join;
  uint64_t rows = product(recipe.shape) / columns / std::max<uint64_t>(1, recipe.stack);
  if (!recipe.part)
    return {rows, columns, rows};
  uint64_t taken = recipe.shape[recipe.shape.size() - 2] * recipe.join;
  return {rows / taken * recipe.part->of, columns, taken};
}

Status packSource(const WeightRecipe &recipe, const Tensor &tensor, SegmentSink &sink) {
  Source source(recipe, tensor, sink);
  auto [rows, columns, taken] = sourceShape(recipe);
  SourcePart part = recipe.part.value_or(SourcePart{0, rows});
  for (uint64_t begin = part.first; begin < rows; begin += part.of) {
    if (recipe.join == 1) {
      STRATA_RETURN_IF_ERROR(source.copy(begin * columns, taken * columns));
      continue;
    }
    uint64_t joined = recipe.shape[0];
    for (uint64_t row = 0; row < joined; ++row)
      for (uint64_t group = 0; group < recipe.join; ++group)
        STRATA_RETURN_IF_ERROR(source.copy((begin + group * joined + row) * columns, columns));
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

std::vector<std::string> WeightRecipe::sources() const {
  if (source.empty() || stack == 0)
    return source.empty() ? std::vector<std::string>{} : std::vector{source};
  std::vector<std::string> names;
  size_t star = source.find('*');
  for (uint64_t i = 0; i < stack; ++i)
    names.push_back(source.substr(0, star) + std::to_string(i) + source.substr(star + 1));
  return names;
}

Status checkRecipe(const WeightRecipe &recipe, const Checkpoint &checkpoint) {
  for (const std::string &name : recipe.sources()) {
    const Tensor *tensor = checkpoint.find(name);
    if (!tensor)
      return makeError(StatusCode::NotFound, "weight '{}' needs tensor '{}', which '{}' lacks",
                       recipe.name, name, checkpoint.path());
    SourceShape source = sourceShape(recipe);
    uint64_t rows = source.rows, columns = source.columns;
    // A vector may be stored in any shape: it has no rows that could be mixed up.
    bool isVector = recipe.shape.size() == 1;
    if (product(tensor->shape) != rows * columns ||
        (!isVector && (tensor->shape.empty() || tensor->shape.back() != columns)))
      return makeError(StatusCode::InvalidData, "weight '{}' is {} but tensor '{}' is {}{}",
                       recipe.name, shapeText(recipe.shape), name, shapeText(tensor->shape),
                       recipe.stack || recipe.part || recipe.join > 1
                           ? fmt::format(", where {} rows of {} are needed", rows, columns)
                           : "");
    if (tensor->type != recipe.type && recipe.type->name != "f32")
      return makeError(StatusCode::InvalidData,
                       "weight '{}' is {} but tensor '{}' is {}; only f32 is converted to",
                       recipe.name, recipe.type->name, name, tensor->type->name);
  }
  return Status::ok();
}

Status packWeight(const WeightRecipe &recipe, const Checkpoint *checkpoint, SegmentSink &sink) {
  std::vector<const Tensor *> tensors;
  if (!recipe.source.empty()) {
    if (!checkpoint)
      return makeError(StatusCode::InvalidArgument,
                       "weight '{}' needs tensor '{}' but there is no checkpoint", recipe.name,
                       recipe.source);
    STRATA_RETURN_IF_ERROR(checkRecipe(recipe, *checkpoint));
    for (const std::string &name : recipe.sources())
      tensors.push_back(checkpoint->find(name));
  }
  if (recipe.isIdentity) {
    std::vector<float> values(recipe.shape[0]);
    std::iota(values.begin(), values.end(), 0.0f);
    return sink.write(std::as_bytes(std::span(values)));
  }
  if (recipe.computed) {
    std::vector<float> divisors;
    if (!tensors.empty()) {
      const Tensor &tensor = *tensors.front();
      divisors.resize(recipe.shape[0]);
      dequantiseRow(*tensor.type, bytesOf(tensor), divisors.size(), divisors.data());
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
  for (const Tensor *tensor : tensors) {
    STRATA_RETURN_IF_ERROR(packSource(recipe, *tensor, sink));
    // A mapped tensor that was read is resident: without this, compiling would take the whole file.
    releasePages(tensor->bytes);
  }
  return Status::ok();
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
