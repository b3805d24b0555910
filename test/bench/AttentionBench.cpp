// How long `attention` takes on one thread for one row at the end of a context: the part of a
// decoding step that grows with the context. Run on an idle machine.
#include <benchmark/benchmark.h>

#include "runtime/checkpoint/WeightTypeTable.h"
#include "test/codegen/cpu/KernelCall.h"

namespace strata::cpu {
namespace {

/// 9 query heads of 64 over 3 KV heads, in blocks of 32 tokens.
void attention(benchmark::State &state, std::string_view type, Isa isa) {
  constexpr uint32_t queryHeads = 9, kvHeads = 3, width = 64, blockTokens = 32;
  auto context = uint32_t(state.range(0));
  uint64_t componentBytes =
      uint64_t(blockTokens) * kvHeads * width * findWeightType(type)->blockBytes;
  std::vector<int32_t> table(context / blockTokens), sequence = {0},
                                                     position = {int32_t(context) - 1};
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = int32_t(i * 7 % table.size());
  // 0x2C in every byte is an ordinary number in each type.
  std::vector<uint8_t> pool(table.size() * 2 * componentBytes, 0x2C);
  std::vector<float> q = randomFloats(queryHeads * width, 1), y(queryHeads * width);
  KernelCall call(fmt::format("attention.{0}.{0}", type), isa,
                  {{"q", q},
                   {"k", pool},
                   {"v", pool.data() + componentBytes},
                   {"y", y},
                   {"block_table", table},
                   {"row_sequence", sequence},
                   {"row_position", position},
                   {"query_heads", queryHeads},
                   {"kv_heads", kvHeads},
                   {"key_width", width},
                   {"value_width", width},
                   {"scale", 0.125},
                   {"window", 0},
                   {"block_tokens", blockTokens},
                   {"block_stride", 2 * componentBytes},
                   {"max_blocks", table.size()}});
  for (auto _ : state)
    call.run(0, queryHeads);
  state.counters["flop/s"] = benchmark::Counter(
      double(state.iterations()) * 4.0 * queryHeads * width * context, benchmark::Counter::kIsRate);
}

} // namespace
} // namespace strata::cpu

int main(int argc, char **argv) {
  using namespace strata;
  for (cpu::Isa isa : cpu::runnableIsas())
    for (const char *type : {"f16", "bf16", "f32"})
      benchmark::RegisterBenchmark(
          fmt::format("attention.{0}.{0}/{1}", type, cpu::isaName(isa)).c_str(),
          [type, isa](benchmark::State &state) { cpu::attention(state, type, isa); })
          ->Args({512})
          ->Args({4096})
          ->ArgNames({"context"});
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
