// Inputs and outputs of kernel tests: guarded rows, blocks of any weight type, lists of kernels.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/checkpoint/WeightTypeTable.h"
#include "test/codegen/cpu/KernelCall.h"

namespace strata::cpu {

/// The kernels that a test file says it tests; KernelTableTest compares them with the table.
class Tested {
public:
  Tested(std::initializer_list<const char *> kernels) {
    names().insert(kernels.begin(), kernels.end());
  }
  explicit Tested(const std::vector<std::string> &kernels) {
    names().insert(kernels.begin(), kernels.end());
  }
  static std::set<std::string, std::less<>> &names() {
    static std::set<std::string, std::less<>> names;
    return names;
  }
};

/// The kernels of the table whose names begin with `prefix`.
inline std::vector<std::string> kernelsOf(std::string_view prefix) {
  std::vector<std::string> kernels;
  for (std::string_view name : kernelNames(Isa::X86_64_v3))
    if (name.starts_with(prefix))
      kernels.emplace_back(name);
  return kernels;
}

/// The test of one kernel on one instruction set that this machine runs.
class KernelTest : public testing::TestWithParam<std::tuple<std::string, Isa>> {
public:
  static std::string name(const testing::TestParamInfo<ParamType> &info) {
    std::string text =
        fmt::format("{}_{}", std::get<0>(info.param), isaName(std::get<1>(info.param)));
    for (char &c : text)
      if (!std::isalnum(static_cast<unsigned char>(c)))
        c = '_';
    return text;
  }

protected:
  std::string kernel() const { return std::get<0>(GetParam()); }
  Isa isa() const { return std::get<1>(GetParam()); }
  /// What stands after the first dot.
  std::string suffix() const { return kernel().substr(kernel().find('.') + 1); }
};

#define STRATA_TEST_KERNELS(suite, ...)                                                            \
  static const Tested suite##Tested(__VA_ARGS__);                                                  \
  INSTANTIATE_TEST_SUITE_P(                                                                        \
      Kernels, suite,                                                                              \
      testing::Combine(testing::ValuesIn(std::vector<std::string>(__VA_ARGS__)),                   \
                       testing::ValuesIn(runnableIsas())),                                         \
      [](const auto &info) { return suite::name(info); })

inline uint32_t bits(float value) { return std::bit_cast<uint32_t>(value); }

/// F32 [rows, width] between guards, all of it filled with a value that no kernel computes.
class GuardedRows {
public:
  GuardedRows(size_t rows, size_t width)
      : width_(width), values_(rows * width + 2 * guard, untouched) {}

  float *data() { return values_.data() + guard; }
  const float *data() const { return values_.data() + guard; }
  const float *row(size_t index) const { return data() + index * width_; }

  /// Whether every value outside rows [begin, end) is as it was.
  testing::AssertionResult touchedOnly(size_t begin, size_t end) const {
    for (size_t i = 0; i < values_.size(); ++i)
      if ((i < guard + begin * width_ || i >= guard + end * width_) &&
          bits(values_[i]) != bits(untouched))
        return testing::AssertionFailure()
               << "value " << ptrdiff_t(i) - ptrdiff_t(guard) << " was written: " << values_[i];
    return testing::AssertionSuccess();
  }

private:
  static constexpr float untouched = -12345.678f;
  static constexpr size_t guard = 64;
  size_t width_;
  std::vector<float> values_;
};

inline testing::AssertionResult sameBits(const float *a, const float *b, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (bits(a[i]) != bits(b[i]))
      return testing::AssertionFailure() << "value " << i << ": " << a[i] << " and " << b[i];
  return testing::AssertionSuccess();
}

/// A matrix of a weight type and the values that it stands for.
struct WeightMatrix {
  std::vector<uint8_t> bytes;
  std::vector<float> values;
};

/// Random blocks of any type, without knowing its fields: of random bytes those are kept whose
/// largest value lies in [1/16, 4).
inline WeightMatrix randomWeights(const WeightType &type, size_t elements, uint32_t seed) {
  std::mt19937 generator(seed);
  constexpr size_t poolBlocks = 512;
  std::vector<std::vector<uint8_t>> pool;
  std::vector<float> values(type.blockElements);
  while (pool.size() < poolBlocks) {
    std::vector<uint8_t> block(type.blockBytes);
    for (uint8_t &byte : block)
      byte = uint8_t(generator());
    type.dequantise(block.data(), values.data());
    float largest = 0;
    for (float value : values)
      largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : INFINITY;
    if (largest >= 0.0625f && largest < 4)
      pool.push_back(std::move(block));
  }
  WeightMatrix matrix;
  for (size_t i = 0; i < elements / type.blockElements; ++i) {
    const std::vector<uint8_t> &block = pool[generator() % poolBlocks];
    matrix.bytes.insert(matrix.bytes.end(), block.begin(), block.end());
  }
  matrix.values.resize(elements);
  dequantiseRow(type, matrix.bytes.data(), elements, matrix.values.data());
  return matrix;
}

} // namespace strata::cpu
