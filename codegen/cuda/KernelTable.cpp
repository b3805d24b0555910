#include "codegen/cuda/KernelTable.h"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

#include "runtime/base/CheckedMath.h"
#include "runtime/checkpoint/WeightTypes.h"

namespace strata::cuda {
namespace {

constexpr uint32_t warp = 32;

/// What the part of a kernel's name after its family is, and so what its template takes.
enum class Suffix { None, WeightType, StateType, StateTypes, GatedFunction, Function };

struct Family {
  std::string_view name;
  std::string_view header;
  Suffix suffix;
  LaunchShape (*shape)(std::string_view kernel, uint64_t rows, const Constants &constants);
};

LaunchShape blockPerRow(std::string_view, uint64_t rows, const Constants &) {
  return {.gridX = rows, .threads = 256};
}

LaunchShape warpPerHead(std::string_view, uint64_t rows, const Constants &constants) {
  return {.gridX = rows, .gridY = constants("heads"), .threads = warp};
}

LaunchShape blockPerQueryHead(std::string_view, uint64_t rows, const Constants &constants) {
  return {.gridX = rows, .gridY = constants("query_heads"), .threads = 128};
}

/// Four elements a thread.
LaunchShape elementwise(std::string_view, uint64_t rows, const Constants &constants) {
  return {.gridX = rows, .gridY = ceilDiv(constants("width"), uint64_t(1024)), .threads = 256};
}

/// A block has four outputs of up to eight rows (Linear.cuh), or a tile of many (LinearTile.cuh).
LaunchShape linear(std::string_view kernel, uint64_t rows, const Constants &constants) {
  if (rows > 8 && kernel == "linear.bf16" && constants("columns") % 32 == 0) {
    uint64_t tileRows = rows >= 64 ? 128 : 32, tileOutputs = rows >= 64 ? 128 : 64;
    return {.gridX = ceilDiv(constants("outputs"), tileOutputs),
            .gridY = ceilDiv(rows, tileRows),
            .threads = 256,
            .rows = uint32_t(tileRows)};
  }
  uint64_t together = std::min<uint64_t>(std::bit_ceil(rows), 8);
  return {.gridX = ceilDiv(constants("outputs"), uint64_t(4)),
          .gridY = ceilDiv(rows, together),
          .threads = 256,
          .rows = uint32_t(together)};
}

LaunchShape largeBlockPerRow(std::string_view, uint64_t rows, const Constants &) {
  return {.gridX = rows, .threads = 1024};
}

constexpr Family families[] = {
    {"embed", "Embed.cuh", Suffix::WeightType, blockPerRow},
    {"rms_norm", "Norm.cuh", Suffix::None, blockPerRow},
    {"rms_norm_heads", "Norm.cuh", Suffix::None, warpPerHead},
    {"linear", "Linear.cuh", Suffix::WeightType, linear},
    {"rope", "Rope.cuh", Suffix::None, blockPerRow},
    {"kv_write", "State.cuh", Suffix::StateType, blockPerRow},
    {"attention", "Attention.cuh", Suffix::StateTypes, blockPerQueryHead},
    {"gated", "Elementwise.cuh", Suffix::GatedFunction, elementwise},
    {"activation", "Elementwise.cuh", Suffix::Function, elementwise},
    {"add", "Elementwise.cuh", Suffix::None, elementwise},
    {"copy_rows", "Elementwise.cuh", Suffix::None, elementwise},
    {"gather_rows", "Elementwise.cuh", Suffix::None, elementwise},
    {"sample", "Sample.cuh", Suffix::None, largeBlockPerRow},
};

constexpr std::string_view stateTypes[] = {"f32", "f16", "bf16"};
constexpr std::string_view gatedFunctions[] = {"silu", "gelu_tanh"};
constexpr std::string_view functions[] = {"silu", "gelu_tanh", "relu2", "sigmoid"};

template <class List> struct NamesOf;
template <class... T> struct NamesOf<std::tuple<T...>> {
  static constexpr std::array<std::string_view, sizeof...(T)> names = {T::name...};
};
constexpr auto &weightTypeNames = NamesOf<WeightTypeList>::names;

/// What may follow the family's name, without its dot.
std::vector<std::string> suffixes(Suffix suffix) {
  auto all = [](auto &names) {
    return std::vector<std::string>(std::begin(names), std::end(names));
  };
  switch (suffix) {
  case Suffix::None:
    return {""};
  case Suffix::WeightType:
    return all(weightTypeNames);
  case Suffix::StateType:
    return all(stateTypes);
  case Suffix::GatedFunction:
    return all(gatedFunctions);
  case Suffix::Function:
    return all(functions);
  case Suffix::StateTypes:
    break;
  }
  std::vector<std::string> pairs;
  for (std::string_view key : stateTypes)
    for (std::string_view value : stateTypes)
      pairs.push_back(fmt::format("{}.{}", key, value));
  return pairs;
}

std::string nameOf(const Family &family, const std::string &suffix) {
  return suffix.empty() ? std::string(family.name) : fmt::format("{}.{}", family.name, suffix);
}

const Family *findFamily(std::string_view kernel) {
  std::string_view name = kernel.substr(0, kernel.find('.'));
  auto found = std::find_if(std::begin(families), std::end(families),
                            [&](const Family &family) { return family.name == name; });
  return found == std::end(families) ? nullptr : found;
}

/// `q4_k` to `Q4_K`: types are called in C++ as in the table.
std::string typeName(std::string_view name) {
  std::string result(name);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return char(std::toupper(c)); });
  return result;
}

/// `gelu_tanh` to `GeluTanh`.
std::string camelCase(std::string_view name) {
  std::string result;
  bool isStart = true;
  for (char c : name) {
    if (c != '_')
      result += isStart ? char(std::toupper(static_cast<unsigned char>(c))) : c;
    isStart = c == '_';
  }
  return result;
}

} // namespace

bool hasKernel(std::string_view kernel) {
  const Family *family = findFamily(kernel);
  if (!family)
    return false;
  for (const std::string &suffix : suffixes(family->suffix))
    if (nameOf(*family, suffix) == kernel)
      return true;
  return false;
}

std::vector<std::string> kernelNames() {
  std::vector<std::string> names;
  for (const Family &family : families)
    for (const std::string &suffix : suffixes(family.suffix))
      names.push_back(nameOf(family, suffix));
  return names;
}

LaunchShape launchShape(std::string_view kernel, uint64_t rows, const Constants &constants) {
  return findFamily(kernel)->shape(kernel, rows, constants);
}

uint64_t scratchBytes(std::string_view kernel, uint64_t width) {
  return kernel == "sample" ? alignUp(width * (sizeof(float) + sizeof(int32_t)), 64) : 0;
}

std::string functionName(uint32_t index) { return fmt::format("k{}", index); }

std::string header(std::string_view kernel) { return std::string(findFamily(kernel)->header); }

std::string templateArguments(std::string_view kernel) {
  const Family &family = *findFamily(kernel);
  bool isFunction = family.suffix == Suffix::GatedFunction || family.suffix == Suffix::Function;
  std::string arguments;
  for (size_t dot = kernel.find('.'); dot != std::string_view::npos;) {
    size_t next = kernel.find('.', dot + 1);
    std::string_view part = kernel.substr(
        dot + 1, next == std::string_view::npos ? std::string_view::npos : next - dot - 1);
    arguments += "strata::" + (isFunction ? camelCase(part) : typeName(part)) + ", ";
    dot = next;
  }
  return arguments;
}

} // namespace strata::cuda
