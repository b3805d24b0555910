// How fast `linear` is on one thread: the bytes of weights a second, which bound decoding, and the
// floating-point operations a second, which bound prompts. Run on an idle machine.
#include <cstring>

#include <benchmark/benchmark.h>

#include "runtime/checkpoint/WeightTypeTable.h"
#include "runtime/checkpoint/WeightTypes.h"
#include "test/codegen/cpu/KernelCall.h"

namespace strata::cpu {
namespace {

/// Random bytes of 0x2C..0x2F: as F16, BF16 or F32 these are ordinary numbers, so that no subnormal
/// slows the arithmetic.
std::vector<uint8_t> randomWeights(const WeightType &type, uint64_t elements) {
  std::mt19937 generator(1);
  std::vector<uint8_t> bytes(*type.bytesFor(elements));
  for (uint8_t &byte : bytes)
    byte = 0x2C | (generator() & 3);
  return bytes;
}

void linear(benchmark::State &state, std::string_view typeName, Isa isa) {
  const WeightType &type = *findWeightType(typeName);
  auto rows = uint32_t(state.range(0)), columns = uint32_t(state.range(1)),
       outputs = uint32_t(state.range(2));
  std::string kernel = fmt::format("linear.{}", typeName);
  std::vector<uint8_t> weight = randomWeights(type, uint64_t(columns) * outputs);
  std::vector<float> x = randomFloats(size_t(rows) * columns, 2), y(size_t(rows) * outputs);
  uint64_t stride = scratchBytes(kernel, columns);
  std::vector<uint8_t> scratch(stride);
  KernelCall call(kernel, isa,
                  {{"x", x},
                   {"weight", weight},
                   {"y", y},
                   {"valid_rows", &rows},
                   {"scratch", scratch},
                   {"scratch_stride", stride},
                   {"columns", columns},
                   {"outputs", outputs},
                   {"accumulate", 0}});
  for (auto _ : state)
    call.run(0, (outputs + linearTileOutputs - 1) / linearTileOutputs);
  auto iterations = double(state.iterations());
  state.counters["weights/s"] =
      benchmark::Counter(iterations * double(weight.size()), benchmark::Counter::kIsRate);
  state.counters["flop/s"] =
      benchmark::Counter(iterations * 2.0 * rows * columns * outputs, benchmark::Counter::kIsRate);
}

} // namespace
} // namespace strata::cpu

int main(int argc, char **argv) {
  using namespace strata;
  for (cpu::Isa isa : cpu::runnableIsas())
    for (const WeightType &type : weightTypes())
      for (int rows : {1, 4, 16, 128})
        benchmark::RegisterBenchmark(
            fmt::format("linear.{}/{}", type.name, cpu::isaName(isa)).c_str(),
            [&type, isa](benchmark::State &state) { cpu::linear(state, type.name, isa); })
            ->Args({rows, 1536, 576})
            ->ArgNames({"rows", "columns", "outputs"});
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
