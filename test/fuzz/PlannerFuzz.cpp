// Every problem gets an answer that the checker accepts, and no search ends in an assertion. The
// first bytes choose the range of times and sizes, so that small and hostile numbers both appear.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "passes/planner/Planner.h"

using namespace strata::planner;

namespace {

class Input {
public:
  Input(const uint8_t *data, size_t size) : data_(data), size_(size) {}
  bool isEmpty() const { return at_ >= size_; }
  uint64_t take(unsigned bytes) {
    uint64_t value = 0;
    for (; bytes > 0 && at_ < size_; --bytes)
      value = value << 8 | data_[at_++];
    return value;
  }

private:
  const uint8_t *data_;
  size_t size_, at_ = 0;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Input input(data, size);
  uint64_t shape = input.take(1);
  unsigned timeBytes = shape & 1 ? 8 : 1, sizeBytes = shape & 2 ? 7 : 1;
  Problem problem;
  problem.nodeLimit = 2000;
  Bytes sum = 0;
  while (!input.isEmpty() && problem.buffers.size() < 64) {
    Buffer buffer;
    buffer.lower = Time(input.take(timeBytes));
    buffer.upper =
        timeBytes == 1 ? buffer.lower + 1 + Time(input.take(1) % 16) : Time(input.take(timeBytes));
    buffer.size = Bytes(input.take(sizeBytes) >> (sizeBytes == 7 ? 2 : 0)) + 1;
    if (buffer.lower >= buffer.upper || __builtin_add_overflow(sum, buffer.size, &sum))
      continue;
    problem.buffers.push_back(buffer);
  }
  Bytes live = maximumLiveBytes(problem.buffers);
  if (shape & 4)
    problem.capacity = live + Bytes(shape >> 3);

  Solution solution = solve(problem);
  Bytes peak = 0;
  for (size_t k = 0; k < problem.buffers.size(); ++k)
    peak = std::max(peak, solution.offsets[k] + problem.buffers[k].size);
  bool holds = !check(problem.buffers, solution.offsets) && solution.peak == peak &&
               solution.lowerBound >= live && solution.lowerBound <= solution.peak &&
               solution.proven == (solution.peak == solution.lowerBound) &&
               solution.nodes <= problem.nodeLimit;
  if (!holds)
    std::abort();
  return 0;
}
