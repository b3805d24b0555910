// Small shapes for every kernel of the table, in which no two numbers that could be mixed up agree.
#pragma once

#include <bit>
#include <map>
#include <string>

#include "codegen/cuda/KernelTable.h"
#include "codegen/cuda/MatvecShape.h"

namespace strata::cuda {

inline uint64_t sampleConstant(std::string_view name) {
  static const std::map<std::string_view, uint64_t> values = {
      {"width", 768},
      {"vocabulary", 4500},
      {"scale", std::bit_cast<uint64_t>(0.125)},
      {"epsilon", std::bit_cast<uint64_t>(1e-5)},
      {"layer", 3},
      {"heads", 6},
      {"head_width", 128},
      {"weight_stride", 0},
      {"scratch_stride", 36032},
      {"columns", 768},
      {"outputs", 514},
      {"accumulate", 1},
      {"rotary_width", 64},
      {"interleaved", 0},
      {"first", 2},
      {"magnitude", std::bit_cast<uint64_t>(1.0)},
      {"block_tokens", 16},
      {"block_stride", 65536},
      {"max_blocks", 9},
      {"query_heads", 12},
      {"kv_heads", 4},
      {"key_width", 64},
      {"value_width", 96},
      {"window", 40},
      {"sequences", 3},
      {"rows", 12},
      {"context", 200},
      {"weight_rows", 24},
      {"tail", 10},
      {"transposed", 0},
      {"experts", 6},
      {"used", 2},
      {"groups", 2},
      {"groups_used", 1},
      {"group_top", 2},
      {"normalise", 1},
      {"least_sum", std::bit_cast<uint64_t>(0.0625)},
      {"row_width", 1542}, // three groups of outputs, two of columns
      {"count", 3},
      {"by_use", 0},
      {"gated", 1},
      {"function", 0},
      {"taps", 4},
      {"state_width", 20},
      {"least_dt", std::bit_cast<uint64_t>(0.01)},
      {"most_dt", std::bit_cast<uint64_t>(3.0)},
  };
  return values.at(name);
}

/// Types and functions differ in their formulas alone, which no kernel reads differently: where a
/// family has many, a plain type, a quantised one and one function stand for all.
inline bool isOneOfMany(std::string_view kernel) {
  for (size_t dot = kernel.find('.'); dot != std::string_view::npos;) {
    size_t next = kernel.find('.', dot + 1);
    std::string_view part =
        kernel.substr(dot + 1, next == std::string_view::npos ? next : next - dot - 1);
    if (part != "bf16" && part != "q4_k" && part != "silu")
      return true;
    dot = next;
  }
  return false;
}

/// Whether the family has weight types through code that linear's kernels show for each of them.
inline bool hasTypesOfLinear(std::string_view kernel) {
  return kernel.starts_with("norm_") || kernel.starts_with("expert_") ||
         kernel.starts_with("head_linear");
}

/// Whether `kernel` stores its result in a type that is none of those it reads, which no kernel
/// does differently.
inline bool storesAnotherType(std::string_view kernel) {
  return kernel.starts_with("attention.") && !namePart(kernel, 3).empty() &&
         (namePart(kernel, 3) != namePart(kernel, 1) || namePart(kernel, 3) != namePart(kernel, 2));
}

/// The most rows of a bucket that has `kernel`.
inline uint64_t mostRows(std::string_view kernel) {
  return kernel.starts_with("norm_") ? matvecRows : UINT64_MAX;
}

inline Specialisation sampleSpecialisation(const std::string &kernel, uint64_t rows,
                                           const CudaTarget &target) {
  LaunchShape shape = launchShape(kernel, rows, sampleConstant, target);
  Specialisation result{
      kernel,           {}, shape.threads, shape.rows, shape.clusterY, shape.residentBlocks,
      shape.sharedBytes};
  for (const SlotSpec &slot : findSignature(kernel)->slots)
    if (slot.isSpecialised())
      result.constants.push_back(sampleConstant(slot.name));
  return result;
}

} // namespace strata::cuda
