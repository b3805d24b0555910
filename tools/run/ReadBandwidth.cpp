#include "tools/run/ReadBandwidth.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace strata::run {
namespace {

constexpr uint64_t bufferBytes = 512 << 20;
constexpr size_t sums = 32; // side by side, so that no addition waits for another

uint64_t sumOf(const std::vector<uint64_t> &values) {
  uint64_t sum[sums] = {};
  for (size_t i = 0; i + sums <= values.size(); i += sums)
    for (size_t j = 0; j < sums; ++j)
      sum[j] += values[i + j];
  uint64_t total = 0;
  for (uint64_t each : sum)
    total += each;
  return total;
}

} // namespace

ReadBandwidth::ReadBandwidth(uint32_t threads) : parts_(std::max(threads, 1u)) {
  for (std::vector<uint64_t> &part : parts_)
    part.assign(bufferBytes / parts_.size() / sizeof(uint64_t) / sums * sums, 1);
}

double ReadBandwidth::measure() const {
  uint64_t bytes = 0;
  for (const std::vector<uint64_t> &part : parts_)
    bytes += part.size() * sizeof(uint64_t);
  std::atomic<uint64_t> total = 0; // keeps the reads from being left out
  auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (const std::vector<uint64_t> &part : parts_)
      threads.emplace_back([&] { total += sumOf(part); });
  }
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return total * sizeof(uint64_t) == bytes ? double(bytes) / seconds : 0;
}

} // namespace strata::run
