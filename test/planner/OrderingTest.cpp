// The order of a layer's commands may lower its peak and must never raise it, nor break a
// dependency.
#include "passes/planner/Ordering.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace strata::planner {
namespace {

std::vector<size_t> given(const OrderProblem &problem) {
  std::vector<size_t> order(problem.commands);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

bool respects(const OrderProblem &problem, const std::vector<size_t> &order) {
  std::vector<size_t> position(problem.commands, problem.commands);
  for (size_t i = 0; i < order.size(); ++i)
    position[order[i]] = i;
  for (size_t command = 0; command < problem.commands; ++command)
    for (size_t before : problem.before[command])
      if (position[before] >= position[command])
        return false;
  return std::ranges::none_of(position, [&](size_t p) { return p == problem.commands; });
}

/// Live bytes by the definition: command by command, buffer by buffer.
int64_t plainPeak(const OrderProblem &problem, const std::vector<size_t> &order) {
  int64_t peak = 0;
  for (size_t now = 0; now < order.size(); ++now) {
    int64_t live = 0;
    for (const OrderBuffer &buffer : problem.buffers) {
      bool begun = buffer.aliveBefore, wanted = buffer.aliveAfter;
      for (size_t i = 0; i < order.size(); ++i)
        if (std::ranges::count(buffer.commands, order[i])) {
          begun |= i <= now;
          wanted |= i >= now;
        }
      live += begun && wanted ? buffer.bytes : 0;
    }
    peak = std::max(peak, live);
  }
  return peak;
}

int64_t bruteForce(const OrderProblem &problem) {
  std::vector<size_t> order = given(problem);
  int64_t best = INT64_MAX;
  do {
    if (respects(problem, order))
      best = std::min(best, plainPeak(problem, order));
  } while (std::ranges::next_permutation(order).found);
  return best;
}

/// Commands 0 .. n - 1, each waiting for some of those before it; a buffer from each command to the
/// ones that wait for it, and a few that are shared.
OrderProblem randomProblem(std::mt19937 &random, size_t commands) {
  OrderProblem problem;
  problem.commands = commands;
  problem.before.resize(commands);
  for (size_t c = 0; c < commands; ++c)
    problem.buffers.push_back(
        {{c}, static_cast<int64_t>(1 + random() % 9), false, random() % 6 == 0});
  for (size_t c = 1; c < commands; ++c)
    for (size_t n = random() % 3; n > 0; --n) {
      size_t before = random() % c;
      problem.before[c].push_back(before);
      problem.buffers[before].commands.push_back(c);
    }
  OrderBuffer residual{{0}, static_cast<int64_t>(random() % 9), true, random() % 2 == 0};
  residual.commands.push_back(random() % commands);
  problem.buffers.push_back(residual);
  return problem;
}

TEST(Ordering, TwoWideBranches) {
  // Command 0 makes a (100), 1 makes b (100), 2 makes c (1) of a, 3 makes d (1) of b, 4 reads c and
  // d. As given a and b live together: 200, and c while 2 runs: 201. One branch after the other:
  // a + c = 101, then c + b + d = 102.
  OrderProblem problem;
  problem.commands = 5;
  problem.before = {{}, {}, {0}, {1}, {2, 3}};
  problem.buffers = {{{0, 2}, 100}, {{1, 3}, 100}, {{2, 4}, 1}, {{3, 4}, 1}};
  EXPECT_EQ(peakOf(problem, given(problem)), 201);
  std::vector<size_t> order = orderToLowerPeak(problem);
  EXPECT_TRUE(respects(problem, order));
  EXPECT_EQ(peakOf(problem, order), 102);
}

TEST(Ordering, NothingToGainKeepsTheOrder) {
  OrderProblem problem;
  problem.commands = 3;
  problem.before = {{}, {}, {0, 1}};
  problem.buffers = {{{0, 2}, 8}, {{1, 2}, 8}}; // 16 at command 2 whatever comes first
  EXPECT_EQ(orderToLowerPeak(problem), (std::vector<size_t>{0, 1, 2}));
}

TEST(Ordering, WhatLivesBeforeAndAfterCounts) {
  // The residual (50) lives throughout; each command adds its own 10.
  OrderProblem problem;
  problem.commands = 2;
  problem.before = {{}, {}};
  problem.buffers = {{{1}, 50, true, true}, {{0}, 10, false, false}, {{1}, 10, false, false}};
  EXPECT_EQ(peakOf(problem, {0, 1}), 60);
  EXPECT_EQ(peakOf(problem, {1, 0}), 60);
  // Where it dies at its last use, that use comes first: 60, then 10 alone.
  problem.buffers[0].aliveAfter = false;
  problem.buffers[1].bytes = 30;
  EXPECT_EQ(peakOf(problem, {0, 1}), 80);
  EXPECT_EQ(peakOf(problem, {1, 0}), 60);
  EXPECT_EQ(orderToLowerPeak(problem), (std::vector<size_t>{1, 0}));
}

TEST(Ordering, LeastPeakOfAllOrders) {
  std::mt19937 random(17);
  int improved = 0;
  for (int round = 0; round < 250; ++round) {
    OrderProblem problem = randomProblem(random, 1 + random() % 8);
    std::vector<size_t> order = orderToLowerPeak(problem);
    SCOPED_TRACE(round);
    ASSERT_TRUE(respects(problem, order));
    EXPECT_EQ(peakOf(problem, order), plainPeak(problem, order));
    EXPECT_EQ(plainPeak(problem, order), bruteForce(problem));
    improved += plainPeak(problem, order) < plainPeak(problem, given(problem));
  }
  EXPECT_GT(improved, 50) << "the orders given were not the best already";
}

TEST(Ordering, NeverWorseWhereTheSearchTurnsGreedy) {
  std::mt19937 random(23);
  for (int round = 0; round < 60; ++round) {
    OrderProblem problem = randomProblem(random, 20 + random() % 45);
    problem.stateLimit = 50;
    std::vector<size_t> order = orderToLowerPeak(problem);
    SCOPED_TRACE(round);
    ASSERT_TRUE(respects(problem, order));
    EXPECT_LE(plainPeak(problem, order), plainPeak(problem, given(problem)));
  }
}

TEST(Ordering, MoreCommandsThanASetHasBits) {
  std::mt19937 random(29);
  for (size_t commands : {64, 65, 200}) {
    OrderProblem problem = randomProblem(random, commands);
    problem.stateLimit = 100;
    EXPECT_TRUE(respects(problem, orderToLowerPeak(problem))) << commands;
  }
}

} // namespace
} // namespace strata::planner
