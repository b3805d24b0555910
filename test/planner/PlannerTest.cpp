// What solve() promises, against brute force and against itself under changes that must not matter.
#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "passes/planner/Planner.h"

namespace strata::planner {
namespace {

Solution solveChecked(const Problem &problem) {
  Solution solution = solve(problem);
  EXPECT_FALSE(check(problem.buffers, solution.offsets));
  Bytes peak = 0;
  for (size_t k = 0; k < problem.buffers.size(); ++k)
    peak = std::max(peak, solution.offsets[k] + problem.buffers[k].size);
  EXPECT_EQ(solution.peak, peak);
  EXPECT_LE(solution.lowerBound, solution.peak);
  EXPECT_GE(solution.lowerBound, maximumLiveBytes(problem.buffers));
  EXPECT_EQ(solution.proven, solution.peak == solution.lowerBound);
  return solution;
}

Problem problemOf(std::vector<Buffer> buffers) {
  Problem problem;
  problem.buffers = std::move(buffers);
  return problem;
}

std::vector<Buffer> randomBuffers(std::mt19937_64 &random, size_t count, Time times, Time longest,
                                  Bytes largest) {
  std::vector<Buffer> buffers;
  for (size_t k = 0; k < count; ++k) {
    Time lower = random() % times;
    buffers.push_back({lower, lower + 1 + Time(random() % longest), 1 + Bytes(random() % largest)});
  }
  return buffers;
}

/// The least peak over all orders: each buffer, in order, on top of the highest of those before it
/// that live with it. Every placement sinks into one of these.
Bytes leastPeak(const std::vector<Buffer> &buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  Bytes least = std::numeric_limits<Bytes>::max();
  std::vector<Bytes> tops(buffers.size());
  do {
    Bytes peak = 0;
    for (size_t k = 0; k < order.size() && peak < least; ++k) {
      const Buffer &buffer = buffers[order[k]];
      Bytes offset = 0;
      for (size_t j = 0; j < k; ++j) {
        const Buffer &other = buffers[order[j]];
        if (other.lower < buffer.upper && buffer.lower < other.upper)
          offset = std::max(offset, tops[order[j]]);
      }
      tops[order[k]] = offset + buffer.size;
      peak = std::max(peak, tops[order[k]]);
    }
    least = std::min(least, peak);
  } while (std::ranges::next_permutation(order).found);
  return least;
}

TEST(Planner, EmptyProblem) {
  Solution solution = solveChecked({});
  EXPECT_TRUE(solution.offsets.empty());
  EXPECT_EQ(solution.peak, 0);
  EXPECT_TRUE(solution.proven);
}

TEST(Planner, OneBuffer) {
  Solution solution = solveChecked(problemOf({{-5, 7, 96}}));
  EXPECT_EQ(solution.offsets, std::vector<Bytes>{0});
  EXPECT_EQ(solution.peak, 96);
}

TEST(Planner, ReusesBytesOnceFree) {
  // Closed lifetimes A = 100 in [0, 1], B = 80 in [1, 2], C = 60 in [2, 3]; A and B meet at 1
  // (180), B and C at 2 (140), A and C never.
  Solution solution = solveChecked(problemOf({{0, 2, 100}, {1, 3, 80}, {2, 4, 60}}));
  EXPECT_EQ(solution.peak, 180);
  EXPECT_TRUE(solution.proven);
}

TEST(Planner, BufferThatMeetsAllLiesAtZero) {
  Solution solution =
      solveChecked(problemOf({{0, 3, 8}, {3, 6, 16}, {0, 9, 4}, {4, 9, 2}, {7, 9, 16}}));
  EXPECT_EQ(solution.offsets[2], 0);
  EXPECT_EQ(solution.peak, 4 + 16 + 2);
}

TEST(Planner, EqualsBruteForce) {
  std::mt19937_64 random(1);
  auto compare = [&](size_t count, Time times, Time longest, Bytes largest) {
    std::vector<Buffer> buffers = randomBuffers(random, count, times, longest, largest);
    Solution solution = solveChecked(problemOf(buffers));
    ASSERT_EQ(solution.peak, leastPeak(buffers));
    ASSERT_TRUE(solution.proven);
  };
  for (int round = 0; round < 3000; ++round)
    compare(1 + random() % 6, 10, 6, 1 + random() % 12);
  for (int round = 0; round < 300; ++round)
    compare(7, 8, 4, 8);
  for (int round = 0; round < 100; ++round)
    compare(8, 8, 4, 8);
}

/// Problems whose least peak is above their maximum live bytes are rare (one random problem in ten
/// thousand), and only they test that the search exhausts; so start from three and vary the sizes.
TEST(Planner, ProvesAPeakAboveTheMaximumLiveBytes) {
  const std::vector<std::vector<Buffer>> seeds = {
      {{0, 2, 3}, {1, 3, 2}, {1, 4, 2}, {3, 6, 3}, {2, 4, 2}, {0, 1, 3}, {5, 8, 3}},
      {{6, 8, 4}, {7, 11, 4}, {3, 7, 2}, {3, 6, 3}, {4, 5, 3}, {0, 3, 4}, {5, 7, 1}, {2, 4, 3}},
      {{3, 4, 4}, {0, 3, 5}, {3, 6, 2}, {1, 5, 1}, {5, 6, 4}, {4, 5, 3}, {4, 8, 1}, {7, 9, 5}}};
  std::mt19937_64 random(3);
  int above = 0;
  for (int round = 0; round < 150; ++round) {
    std::vector<Buffer> buffers = seeds[round % seeds.size()];
    if (round >= 3)
      for (Buffer &buffer : buffers)
        buffer.size = 12 * buffer.size + Bytes(random() % 4) - 2;
    Solution solution = solveChecked(problemOf(buffers));
    ASSERT_TRUE(solution.proven);
    ASSERT_EQ(solution.peak, leastPeak(buffers));
    if (solution.peak == maximumLiveBytes(buffers))
      continue;
    ++above;
    EXPECT_GT(solution.nodes, 0u);
  }
  EXPECT_GT(above, 100);
}

TEST(Planner, PeakDoesNotDependOnOrderDirectionOrUnit) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 40; ++round) {
    Problem problem = problemOf(randomBuffers(random, 10 + random() % 40, 30, 12, 50));
    problem.nodeLimit = 2'000; // Unproven answers must agree as well.
    Solution given = solveChecked(problem);

    Problem shuffled = problem;
    std::ranges::shuffle(shuffled.buffers, random);
    Solution answer = solveChecked(shuffled);
    EXPECT_EQ(answer.peak, given.peak);
    EXPECT_EQ(answer.lowerBound, given.lowerBound);
    EXPECT_EQ(answer.nodes, given.nodes);

    Problem reversed = problem;
    for (Buffer &buffer : reversed.buffers)
      buffer = {100 - buffer.upper, 100 - buffer.lower, buffer.size};
    EXPECT_EQ(solveChecked(reversed).peak, given.peak);

    Problem scaled = problem;
    for (Buffer &buffer : scaled.buffers)
      buffer.size *= 12'345'678'901;
    Solution large = solveChecked(scaled);
    EXPECT_EQ(large.peak, given.peak * 12'345'678'901);
    EXPECT_EQ(large.lowerBound, given.lowerBound * 12'345'678'901);
    EXPECT_EQ(large.proven, given.proven);
  }
}

TEST(Planner, SameAnswerEveryTime) {
  std::mt19937_64 random(5);
  Problem problem = problemOf(randomBuffers(random, 120, 60, 20, 1000));
  problem.nodeLimit = 3'000;
  Solution first = solveChecked(problem), second = solveChecked(problem);
  EXPECT_EQ(first.offsets, second.offsets);
  EXPECT_EQ(first.nodes, second.nodes);
  EXPECT_LE(first.nodes, problem.nodeLimit);
}

TEST(Planner, NoNodesStillPlaces) {
  std::mt19937_64 random(6);
  Problem problem = problemOf(randomBuffers(random, 200, 60, 20, 1000));
  problem.nodeLimit = 0;
  EXPECT_EQ(solveChecked(problem).nodes, 0u);
}

TEST(Planner, CapacityModeStopsAtTheFirstFit) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 200; ++round) {
    std::vector<Buffer> buffers = randomBuffers(random, 7, 6, 3, 4);
    Bytes least = leastPeak(buffers);
    Problem problem = problemOf(buffers);
    problem.capacity = least + Bytes(random() % 3);
    EXPECT_LE(solveChecked(problem).peak, *problem.capacity);
    // One byte less than the least: a placement all the same, and the proof that none fits.
    problem.capacity = least - 1;
    Solution solution = solveChecked(problem);
    EXPECT_GT(solution.peak, *problem.capacity);
    EXPECT_GT(solution.lowerBound, *problem.capacity);
  }
}

TEST(Planner, OffsetsBeyond32Bits) {
  constexpr Bytes gibibyte = Bytes(1) << 30;
  // 5 GiB and 3 GiB meet: one of them ends at 8 GiB, and the 1 GiB buffer lies over the other.
  Problem problem = problemOf({{0, 10, 5 * gibibyte}, {2, 12, 3 * gibibyte}, {11, 14, gibibyte}});
  Solution solution = solveChecked(problem);
  EXPECT_EQ(solution.peak, 8 * gibibyte);
  EXPECT_GT(*std::ranges::max_element(solution.offsets), Bytes(1) << 31);
  // Three of 3 GiB at once: the highest starts at 6 GiB.
  problem = problemOf({{0, 4, 3 * gibibyte}, {1, 5, 3 * gibibyte}, {2, 6, 3 * gibibyte}});
  solution = solveChecked(problem);
  EXPECT_EQ(solution.peak, 9 * gibibyte);
  EXPECT_EQ(*std::ranges::max_element(solution.offsets), 6 * gibibyte);
}

TEST(Planner, WholeRangeOfTimes) {
  constexpr Time least = std::numeric_limits<Time>::min(), most = std::numeric_limits<Time>::max();
  EXPECT_EQ(solveChecked(problemOf({{least, most, 3}, {least, 0, 5}, {0, most, 7}})).peak, 10);
  EXPECT_EQ(solveChecked(problemOf({{least, 1, 3}, {0, most, 5}, {2, most, 7}})).peak, 12);
}

/// A chain of layers: each has inputs, outputs and scratch that die within it, the residual lives
/// throughout, and every fourth layer keeps something for the next four.
std::vector<Buffer> chainOfLayers(size_t layers, bool residual) {
  std::vector<Buffer> buffers;
  Time end = Time(layers) * 10;
  if (residual)
    buffers.push_back({0, end + 1, 4096});
  for (size_t layer = 0; layer < layers; ++layer) {
    Time t = Time(layer) * 10;
    buffers.push_back({t, t + 2, 4096});
    buffers.push_back({t + 1, t + 4, 6144});
    buffers.push_back({t + 2, t + 5, 4096});
    buffers.push_back({t + 3, t + 7, 16384});
    buffers.push_back({t + 6, t + 9, 16384 + 512 * Bytes(layer % 3)});
    buffers.push_back({t + 8, t + 11, 4096});
    if (layer % 4 == 0)
      buffers.push_back({t + 5, t + 45, 1536});
  }
  return buffers;
}

TEST(Planner, FiftyThousandBuffersOfAChain) {
  for (bool residual : {false, true}) {
    Problem problem = problemOf(chainOfLayers(8000, residual));
    ASSERT_GE(problem.buffers.size(), 50'000u);
    auto start = std::chrono::steady_clock::now();
    Solution solution = solveChecked(problem);
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    EXPECT_TRUE(solution.proven);
    // Generous: an all-pairs pass over 50,000 buffers alone takes several times that.
    EXPECT_LT(seconds.count(), 8);
  }
}

TEST(Planner, NestedAndDenseLifetimes) {
  std::vector<Buffer> nested, dense;
  for (Time k = 0; k < 20'000; ++k)
    nested.push_back({k, 100'000 - k, 1 + k % 5});
  for (Time k = 0; k < 20'000; ++k)
    dense.push_back({k, k + 10'000, 1 + k % 7});
  EXPECT_TRUE(solveChecked(problemOf(nested)).proven);
  solveChecked(problemOf(dense));
}

} // namespace
} // namespace strata::planner
