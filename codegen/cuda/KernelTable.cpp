#include "codegen/cuda/KernelTable.h"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

#include "codegen/cuda/AttentionShape.h"
#include "codegen/cuda/ClusterShape.h"
#include "codegen/cuda/MatvecShape.h"
#include "runtime/base/CheckedMath.h"
#include "runtime/checkpoint/WeightTypeTable.h"
#include "runtime/checkpoint/WeightTypes.h"

namespace strata::cuda {
namespace {

constexpr uint32_t warp = 32;

/// What the part of a kernel's name after its family is, and so what its template takes.
enum class Suffix {
  None,
  WeightType,
  StateType,
  StateTypes,
  Function,
  RowGatedFunction,
  GateFunction,
  GatedFunctionWeightType,
  WeightTypeStateTypes, ///< K and V of one type.
  // With the type of what is written, where it is not F32.
  StoredType,
  FunctionStoredType,
  StateTypesStoredType,
  StateTypeStoredType, ///< Of 16 bits both.
  GemmTypes,
  NarrowType,
};

/// What a launch's shape follows from.
struct Launch {
  std::string_view weightType; ///< Where the name has one.
  uint64_t rows;
  const Constants &constant;
  const CudaTarget &target;
};

struct Family {
  std::string_view name;
  std::string_view header;
  Suffix suffix;
  LaunchShape (*shape)(const Launch &launch);
};

LaunchShape blockPerRow(const Launch &launch) { return {.gridX = launch.rows, .threads = 256}; }

LaunchShape warpPerHead(const Launch &launch) {
  return {.gridX = launch.rows, .gridY = launch.constant("heads"), .threads = warp};
}

/// Few rows share out each row's tokens.
LaunchShape attention(const Launch &launch) {
  uint64_t queryHeads = launch.constant("query_heads"), kvHeads = launch.constant("kv_heads");
  if (launch.rows > attentionSplitRows ||
      !hasAttentionSplit(launch.constant("key_width"), launch.constant("value_width")))
    return {.gridX = launch.rows, .gridY = queryHeads, .threads = 128};
  uint64_t rows = std::bit_ceil(launch.rows),
           blocks = queryHeads / attentionHeads(queryHeads / kvHeads);
  uint32_t splits = attentionSplits(rows * blocks, launch.target.multiprocessors,
                                    launch.target.features.clusters);
  return {.gridX = launch.rows,
          .gridY = blocks * splits,
          .clusterY = splits,
          .threads = 256,
          .rows = uint32_t(rows)};
}

/// A tile is of one sequence: each may leave one that is not full.
LaunchShape attentionPrompt(const Launch &launch) {
  uint64_t kvHeads = launch.constant("kv_heads");
  AttentionTile tile = attentionTile(launch.constant("query_heads") / kvHeads,
                                     launch.constant("key_width"), launch.constant("value_width"));
  return {.gridX = kvHeads,
          .gridY = launch.rows / tile.tokens + launch.constant("sequences"),
          .threads = tile.threads,
          .residentBlocks = 2,
          .sharedBytes = tile.sharedBytes};
}

/// Of a library, not of the module.
LaunchShape noLaunch(const Launch &) { return {.gridX = 0, .gridY = 0, .threads = 0}; }

/// Eight elements a thread.
LaunchShape eightAThread(const Launch &launch) {
  return {.gridX = launch.rows,
          .gridY = ceilDiv(launch.constant("width"), uint64_t(2048)),
          .threads = 256};
}

/// Four elements a thread.
LaunchShape elementwise(const Launch &launch) {
  return {.gridX = launch.rows,
          .gridY = ceilDiv(launch.constant("width"), uint64_t(1024)),
          .threads = 256};
}

/// Blocks of a product of few rows with so many pairs of weight rows (Product.cuh). A constant of 0
/// is refused by whoever reads the plan.
LaunchShape product(const Launch &launch, uint64_t pairs) {
  const WeightType &type = *findWeightType(launch.weightType);
  uint64_t columns = launch.constant("columns");
  uint64_t rows = std::min<uint64_t>(std::bit_ceil(launch.rows), matvecRows);
  if (isStreamed(type.ggufId, columns, rows)) {
    StreamShape shape =
        streamShape({type.blockElements, type.blockBytes}, columns, pairs, rows,
                    launch.target.multiprocessors, launch.target.sharedBytesPerBlock);
    return {.gridX = shape.blocks,
            .gridY = ceilDiv(launch.rows, rows),
            .threads = StreamShape::threads,
            .residentBlocks = 2,
            .sharedBytes = shape.sharedBytes,
            .rows = uint32_t(rows)};
  }
  MatvecShape shape = matvecShape(columns / type.blockElements * type.blockBytes, 2 * pairs);
  return {.gridX = ceilDiv(pairs, uint64_t(shape.outputs / 2)),
          .gridY = ceilDiv(launch.rows, rows),
          .threads = shape.threads,
          .rows = uint32_t(rows)};
}

/// Few rows, or tiles of many (LinearTile.cuh).
LaunchShape linear(const Launch &launch) {
  if (launch.rows > matvecRows && launch.weightType == "bf16" &&
      launch.constant("columns") % 32 == 0) {
    uint64_t tileRows = launch.rows >= 64 ? 128 : 32, tileOutputs = launch.rows >= 64 ? 128 : 64;
    return {.gridX = ceilDiv(launch.constant("outputs"), tileOutputs),
            .gridY = ceilDiv(launch.rows, tileRows),
            .threads = 256,
            .rows = uint32_t(tileRows)};
  }
  return product(launch, ceilDiv(launch.constant("outputs"), uint64_t(2)));
}

LaunchShape normGated(const Launch &launch) { return product(launch, launch.constant("outputs")); }

LaunchShape normQkv(const Launch &launch) {
  uint64_t heads = launch.constant("query_heads") + 2 * launch.constant("kv_heads");
  return product(launch, heads * (launch.constant("head_width") / 2));
}

LaunchShape clusterPerRow(const Launch &launch) {
  uint32_t blocks = launch.target.features.clusters ? clusterBlocks : 1;
  return {.gridX = launch.rows, .gridY = blocks, .clusterY = blocks, .threads = 1024};
}

/// A warp an output, of `rows` rows.
LaunchShape warpPerOutput(uint64_t rows, const Launch &launch) {
  return {.gridX = rows, .gridY = ceilDiv(launch.constant("outputs"), uint64_t(8)), .threads = 256};
}

LaunchShape expertDown(const Launch &launch) { return warpPerOutput(launch.rows, launch); }

/// For every choice of an expert of the command.
LaunchShape expertUp(const Launch &launch) {
  uint64_t choices = std::min(launch.constant("used"), launch.constant("count"));
  return warpPerOutput(launch.rows * choices, launch);
}

LaunchShape oneBlock(const Launch &) { return {.threads = 512}; }

LaunchShape blockPerHead(const Launch &launch) {
  return {.gridX = launch.rows, .gridY = launch.constant("heads"), .threads = 256};
}

LaunchShape blockPerQueryHead(const Launch &launch) {
  return {.gridX = launch.rows, .gridY = launch.constant("query_heads"), .threads = 128};
}

LaunchShape warpPerRow(const Launch &launch) { return {.gridX = launch.rows, .threads = warp}; }

LaunchShape threadPerChannel(const Launch &launch) {
  return {.gridX = ceilDiv(launch.constant("width"), uint64_t(128)), .threads = 128};
}

LaunchShape warpPerStateRow(const Launch &launch) {
  return {
      .gridX = launch.constant("heads"), .gridY = launch.constant("head_width"), .threads = warp};
}

constexpr Family families[] = {
    {"embed", "Embed.cuh", Suffix::WeightType, blockPerRow},
    {"rms_norm", "Norm.cuh", Suffix::StoredType, blockPerRow},
    {"rms_norm_heads", "Norm.cuh", Suffix::None, warpPerHead},
    {"linear", "Linear.cuh", Suffix::WeightType, linear},
    {"gemm", "", Suffix::GemmTypes, noLaunch},
    {"norm_linear", "Linear.cuh", Suffix::WeightType, linear},
    {"norm_gated", "NormGated.cuh", Suffix::GatedFunctionWeightType, normGated},
    {"norm_qkv", "NormQkv.cuh", Suffix::WeightTypeStateTypes, normQkv},
    {"qkv_rope", "QkvRope.cuh", Suffix::StateTypes, blockPerRow},
    {"rope", "Rope.cuh", Suffix::None, blockPerRow},
    {"kv_write", "State.cuh", Suffix::StateType, blockPerRow},
    {"attention", "Attention.cuh", Suffix::StateTypesStoredType, attention},
    {"attention_prompt", "AttentionPrompt.cuh", Suffix::StateTypeStoredType, attentionPrompt},
    {"attention_latent", "Attention.cuh", Suffix::StateTypes, blockPerQueryHead},
    {"head_linear", "HeadLinear.cuh", Suffix::WeightType, blockPerHead},
    {"gated", "Elementwise.cuh", Suffix::FunctionStoredType, elementwise},
    {"gated_pair", "Elementwise.cuh", Suffix::FunctionStoredType, eightAThread},
    {"convert", "Elementwise.cuh", Suffix::NarrowType, elementwise},
    {"activation", "Elementwise.cuh", Suffix::Function, elementwise},
    {"add", "Elementwise.cuh", Suffix::None, elementwise},
    {"copy_rows", "Elementwise.cuh", Suffix::None, elementwise},
    {"gather_rows", "Elementwise.cuh", Suffix::None, elementwise},
    {"row_gated", "Elementwise.cuh", Suffix::RowGatedFunction, elementwise},
    {"router", "Router.cuh", Suffix::GateFunction, warpPerRow},
    {"expert_lists", "Experts.cuh", Suffix::None, oneBlock},
    {"expert_up", "Experts.cuh", Suffix::WeightType, expertUp},
    {"expert_down", "Experts.cuh", Suffix::WeightType, expertDown},
    {"conv", "Recurrent.cuh", Suffix::None, threadPerChannel},
    {"ssm_scan", "Recurrent.cuh", Suffix::None, warpPerStateRow},
    {"sample", "Sample.cuh", Suffix::None, clusterPerRow},
};

constexpr std::string_view stateTypes[] = {"f32", "f16", "bf16"};
constexpr std::string_view narrowTypes[] = {"bf16", "f16"};
constexpr std::string_view gatedFunctions[] = {"silu", "gelu_tanh"};
constexpr std::string_view rowGatedFunctions[] = {"sigmoid"};
constexpr std::string_view gateFunctions[] = {"softmax", "sigmoid"};
constexpr std::string_view functions[] = {"silu", "gelu_tanh", "relu2", "sigmoid"};

template <class List> struct NamesOf;
template <class... T> struct NamesOf<std::tuple<T...>> {
  static constexpr std::array<std::string_view, sizeof...(T)> names = {T::name...};
};
constexpr auto &weightTypeNames = NamesOf<WeightTypeList>::names;

template <class Names> std::vector<std::string> all(const Names &names) {
  return {std::begin(names), std::end(names)};
}

std::vector<std::string> pairs(const std::vector<std::string> &first,
                               const std::vector<std::string> &second) {
  std::vector<std::string> result;
  for (const std::string &a : first)
    for (const std::string &b : second)
      result.push_back(fmt::format("{}.{}", a, b));
  return result;
}

/// Each of `names`, alone and with the type of what is written.
std::vector<std::string> stored(std::vector<std::string> names) {
  std::vector<std::string> result = names;
  for (const std::string &name : names)
    for (std::string_view type : narrowTypes)
      result.push_back(name.empty() ? std::string(type) : fmt::format("{}.{}", name, type));
  return result;
}

/// What may follow the family's name, without its dot.
std::vector<std::string> suffixes(Suffix suffix) {
  switch (suffix) {
  case Suffix::None:
    return {""};
  case Suffix::WeightType:
    return all(weightTypeNames);
  case Suffix::StateType:
    return all(stateTypes);
  case Suffix::Function:
    return all(functions);
  case Suffix::RowGatedFunction:
    return all(rowGatedFunctions);
  case Suffix::GateFunction:
    return all(gateFunctions);
  case Suffix::StateTypes:
    return pairs(all(stateTypes), all(stateTypes));
  case Suffix::GatedFunctionWeightType:
    return pairs(all(gatedFunctions), all(weightTypeNames));
  case Suffix::StoredType:
    return stored({""});
  case Suffix::FunctionStoredType:
    return stored(all(gatedFunctions));
  case Suffix::StateTypesStoredType:
    return stored(pairs(all(stateTypes), all(stateTypes)));
  case Suffix::StateTypeStoredType:
    return stored(all(narrowTypes));
  case Suffix::GemmTypes:
    return {"f32", "bf16", "f16", "bf16.bf16", "f16.f16"};
  case Suffix::NarrowType:
    return all(narrowTypes);
  case Suffix::WeightTypeStateTypes:
    break;
  }
  std::vector<std::string> same;
  for (std::string_view type : stateTypes)
    same.push_back(fmt::format("{0}.{0}", type));
  return pairs(all(weightTypeNames), same);
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

LaunchShape launchShape(std::string_view kernel, uint64_t rows, const Constants &constants,
                        const CudaTarget &target) {
  const Family &family = *findFamily(kernel);
  std::string_view weightType;
  if (family.suffix == Suffix::WeightType || family.suffix == Suffix::WeightTypeStateTypes)
    weightType = namePart(kernel, 1);
  else if (family.suffix == Suffix::GatedFunctionWeightType)
    weightType = namePart(kernel, 2);
  return family.shape({weightType, rows, constants, target});
}

uint64_t scratchBytes(std::string_view kernel, uint64_t width) {
  return kernel == "sample" ? alignUp(width * (sizeof(float) + sizeof(int32_t)), 64) : 0;
}

bool isGemm(std::string_view kernel) { return namePart(kernel, 0) == "gemm"; }

std::string functionName(uint32_t index) { return fmt::format("k{}", index); }

std::string header(std::string_view kernel) { return std::string(findFamily(kernel)->header); }

std::string templateArguments(std::string_view kernel) {
  std::string arguments;
  for (uint32_t i = 1; !namePart(kernel, i).empty(); ++i) {
    std::string_view part = namePart(kernel, i);
    auto isAmong = [&](auto &names) {
      return std::find(std::begin(names), std::end(names), part) != std::end(names);
    };
    bool isFunction = isAmong(functions) || isAmong(gateFunctions);
    arguments += "strata::" + (isFunction ? camelCase(part) : typeName(part)) + ", ";
  }
  return arguments;
}

} // namespace strata::cuda
