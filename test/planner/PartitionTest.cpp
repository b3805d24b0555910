// The cut of a model into stages is exact: no other cut that fits is faster.
#include "passes/planner/Partition.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

namespace strata::planner {
namespace {

Unit unit(std::vector<size_t> weights, int64_t time, int64_t state = 0, int64_t arena = 0,
          int64_t prefill = 0) {
  return {std::move(weights), state, arena, time, prefill};
}

/// L units of equal time, each with a weight of one byte.
PartitionProblem even(size_t units, size_t devices) {
  PartitionProblem problem;
  for (size_t i = 0; i < units; ++i) {
    problem.units.push_back(unit({i}, 1));
    problem.weightBytes.push_back(1);
  }
  problem.capacity.assign(devices, 0);
  return problem;
}

/// What a stage holds, added up without the planner's code.
int64_t bytesOf(const PartitionProblem &problem, size_t first, size_t end) {
  std::set<size_t> weights;
  int64_t bytes = 0, arena = 0;
  for (size_t i = first; i < end; ++i) {
    weights.insert(problem.units[i].weights.begin(), problem.units[i].weights.end());
    bytes += problem.units[i].stateBytes;
    arena = std::max(arena, problem.units[i].arenaBytes);
  }
  for (size_t weight : weights)
    bytes += problem.weightBytes[weight];
  if (problem.blockBytes)
    bytes += problem.blockBytes(first, end);
  return bytes + arena;
}

using Score = std::tuple<int64_t, int64_t, std::vector<size_t>>; // decode, prefill, cuts

std::optional<Score> score(const PartitionProblem &problem, const std::vector<size_t> &cuts) {
  int64_t decode = 0, prefill = 0;
  for (size_t stage = 0; stage + 1 < cuts.size(); ++stage) {
    int64_t d = 0, p = 0;
    for (size_t i = cuts[stage]; i < cuts[stage + 1]; ++i) {
      d += problem.units[i].decodeTime;
      p += problem.units[i].prefillTime;
    }
    decode = std::max(decode, d);
    prefill = std::max(prefill, p);
    int64_t capacity = problem.capacity[stage];
    if (capacity != 0 && bytesOf(problem, cuts[stage], cuts[stage + 1]) > capacity)
      return std::nullopt;
  }
  return Score{decode, prefill, cuts};
}

/// The least score of all cuts, each tried.
std::optional<Score> bruteForce(const PartitionProblem &problem) {
  size_t units = problem.units.size(), devices = problem.capacity.size();
  std::optional<Score> best;
  std::vector<size_t> cuts{0};
  std::function<void()> extend = [&] {
    if (cuts.size() == devices) {
      cuts.push_back(units);
      auto found = score(problem, cuts);
      if (found && (!best || *found < *best))
        best = found;
      cuts.pop_back();
      return;
    }
    for (size_t next = cuts.back() + 1; next < units; ++next) {
      cuts.push_back(next);
      extend();
      cuts.pop_back();
    }
  };
  extend();
  return best;
}

TEST(Partition, HandMade) {
  // 1 | 5 6 5 4 cut in two: {1 5 6} {5 4} has 12 and 9, {1 5} {6 5 4} 6 and 15, {1 5 6 5} {4} 17.
  PartitionProblem problem;
  for (int64_t time : {1, 5, 6, 5, 4})
    problem.units.push_back(unit({}, time));
  problem.capacity = {0, 0};
  EXPECT_EQ(partition(problem), (std::vector<size_t>{0, 3, 5}));
}

TEST(Partition, ASharedWeightIsHeldOnceAStage) {
  // Weight 0 is read by the first unit and the last: 100 + 10 + 10 on one stage, and 100 again on
  // the second.
  PartitionProblem problem;
  problem.weightBytes = {100, 10, 10};
  problem.units = {unit({0, 1}, 1), unit({1, 0}, 1), unit({2, 0}, 1)};
  problem.capacity = {0, 0};
  EXPECT_EQ(stageBytes(problem, 0, 3).weights, 120);
  EXPECT_EQ(stageBytes(problem, 0, 2).weights, 110);
  EXPECT_EQ(stageBytes(problem, 2, 3).weights, 110);
  // 110 a stage fits {0, 1} {2} but not {0} {1, 2}, which has 120 behind the cut.
  problem.capacity = {110, 110};
  EXPECT_EQ(partition(problem), (std::vector<size_t>{0, 2, 3}));
}

TEST(Partition, AnArenaIsTheMaximumOfItsUnits) {
  PartitionProblem problem;
  problem.units = {unit({}, 1, 7, 100), unit({}, 1, 7, 300), unit({}, 1, 7, 200)};
  StageBytes bytes = stageBytes(problem, 0, 3);
  EXPECT_EQ(bytes.arena, 300);
  EXPECT_EQ(bytes.state, 21);
  EXPECT_EQ(bytes.total(), 321);
}

TEST(Partition, TiesGoToPrefillThenToTheEarlierCut) {
  // Times 2 1 2 cut in two: 3 | 2 and 2 | 3. Without prefill times the earlier cut wins; a middle
  // unit that is slow in prefill (1, 5, 3: 6 | 3 and 1 | 8) draws the cut behind it.
  PartitionProblem problem;
  problem.units = {unit({}, 2), unit({}, 1), unit({}, 2)};
  problem.capacity = {0, 0};
  EXPECT_EQ(partition(problem), (std::vector<size_t>{0, 1, 3}));
  problem.units = {unit({}, 2, 0, 0, 1), unit({}, 1, 0, 0, 5), unit({}, 2, 0, 0, 3)};
  EXPECT_EQ(partition(problem), (std::vector<size_t>{0, 2, 3}));
}

TEST(Partition, UnevenDevices) {
  // Four units of 10 bytes; the second device holds one of them.
  PartitionProblem problem = even(4, 2);
  problem.weightBytes.assign(4, 10);
  problem.capacity = {30, 10};
  EXPECT_EQ(partition(problem), (std::vector<size_t>{0, 3, 4}));
  problem.capacity = {10, 30};
  EXPECT_EQ(partition(problem), (std::vector<size_t>{0, 1, 4}));
  problem.capacity = {20, 10};
  EXPECT_EQ(partition(problem), std::nullopt) << "30 bytes of room for 40";
}

TEST(Partition, Infeasible) {
  EXPECT_EQ(partition(even(2, 3)), std::nullopt) << "a stage would be empty";
  EXPECT_EQ(partition(even(2, 0)), std::nullopt);
  // All fit together, but the middle unit alone fits nowhere.
  PartitionProblem problem = even(3, 3);
  problem.weightBytes[1] = 50;
  problem.capacity = {20, 20, 20};
  EXPECT_EQ(partition(problem), std::nullopt);
}

TEST(Partition, StagesAreDisjointAndComplete) {
  // Up to 64 layers, the embedding and the head.
  for (size_t units = 1; units <= 66; ++units)
    for (size_t devices = 1; devices <= std::min<size_t>(units, 8); ++devices) {
      auto cuts = partition(even(units, devices));
      ASSERT_TRUE(cuts) << units << " units on " << devices;
      ASSERT_EQ(cuts->size(), devices + 1);
      EXPECT_EQ(cuts->front(), 0u);
      EXPECT_EQ(cuts->back(), units);
      size_t most = 0;
      for (size_t stage = 0; stage < devices; ++stage) {
        ASSERT_LT((*cuts)[stage], (*cuts)[stage + 1]) << "no stage is empty";
        most = std::max(most, (*cuts)[stage + 1] - (*cuts)[stage]);
      }
      EXPECT_EQ(most, (units + devices - 1) / devices) << units << " units on " << devices;
    }
}

TEST(Partition, BestOfAllCuts) {
  std::mt19937 random(9);
  auto below = [&](int64_t bound) { return static_cast<int64_t>(random() % bound); };
  int infeasible = 0;
  for (int round = 0; round < 1500; ++round) {
    PartitionProblem problem;
    size_t units = 1 + random() % 14, devices = 1 + random() % 4;
    size_t weights = 1 + random() % (units + 3);
    for (size_t i = 0; i < weights; ++i)
      problem.weightBytes.push_back(below(50));
    int64_t spread = 1 + below(8); // few distinct times: many ties
    for (size_t i = 0; i < units; ++i) {
      std::set<size_t> read;
      for (size_t n = random() % 4; n > 0; --n)
        read.insert(random() % weights);
      problem.units.push_back(
          unit({read.begin(), read.end()}, below(spread), below(30), below(40), below(spread)));
    }
    // A ring before all stages but the first, a larger table on the last.
    if (int64_t ring = below(30), table = below(30); round % 2 == 0)
      problem.blockBytes = [=](size_t first, size_t end) {
        return (first > 0 ? ring : 0) + (end == units ? table : 0) + 5;
      };
    int64_t total = bytesOf(problem, 0, units);
    for (size_t i = 0; i < devices; ++i)
      problem.capacity.push_back(random() % 4 == 0 ? 0 : total / 3 + below(total + 1));
    SCOPED_TRACE(round);
    auto found = partition(problem);
    auto expected = bruteForce(problem);
    ASSERT_EQ(found.has_value(), expected.has_value());
    infeasible += !found;
    if (found) {
      EXPECT_EQ(*found, std::get<2>(*expected));
    }
  }
  EXPECT_GT(infeasible, 50) << "both answers were asked for";
  EXPECT_LT(infeasible, 1000);
}

/// What fits goes on to fit where a device grows, or where a shorter context, fewer sequences or a
/// smaller chunk take state and arena away.
TEST(Partition, FeasibilityIsMonotone) {
  std::mt19937 random(13);
  int changed = 0;
  for (int round = 0; round < 1000; ++round) {
    PartitionProblem problem = even(1 + random() % 12, 1 + random() % 4);
    int64_t total = 0;
    for (size_t i = 0; i < problem.units.size(); ++i) {
      problem.weightBytes[i] = random() % 50;
      problem.units[i].stateBytes = random() % 60;
      problem.units[i].arenaBytes = random() % 40;
      total += problem.weightBytes[i] + problem.units[i].stateBytes;
    }
    for (int64_t &capacity : problem.capacity)
      capacity = 1 + total / 3 + random() % (total + 1);
    bool before = partition(problem).has_value();
    switch (random() % 3) {
    case 0:
      problem.capacity[random() % problem.capacity.size()] += random() % 100;
      break;
    case 1:
      for (Unit &unit : problem.units)
        unit.stateBytes = unit.stateBytes * (random() % 4) / 4;
      break;
    default:
      for (Unit &unit : problem.units)
        unit.arenaBytes = unit.arenaBytes * (random() % 4) / 4;
    }
    bool after = partition(problem).has_value();
    EXPECT_TRUE(!before || after) << "round " << round;
    changed += before != after;
  }
  EXPECT_GT(changed, 20) << "some change made room";
}

/// Of random capacities, one that is taken leaves what is reserved untouched on every device, and
/// one that is refused would leave less in every split.
TEST(Partition, Row19WhatFitsLeavesTheReserve) {
  std::mt19937 random(19);
  int fitted = 0, refused = 0;
  for (int round = 0; round < 1000; ++round) {
    PartitionProblem problem = even(2 + random() % 6, 1 + random() % 2);
    for (int64_t &bytes : problem.weightBytes)
      bytes = 1 + int64_t(random() % 50);
    int64_t total = bytesOf(problem, 0, problem.units.size());
    for (int64_t &capacity : problem.capacity) {
      capacity = 1 + int64_t(random() % (2 * total));
      problem.reserved.push_back(int64_t(random() % (total + 10)));
    }
    SCOPED_TRACE(round);
    auto slack = [&](const std::vector<size_t> &cuts, size_t device) {
      return problem.capacity[device] - bytesOf(problem, cuts[device], cuts[device + 1]);
    };
    if (auto cuts = partition(problem)) {
      ++fitted;
      for (size_t device = 0; device < problem.capacity.size(); ++device)
        EXPECT_GE(slack(*cuts, device), problem.reserved[device]);
      continue;
    }
    ++refused;
    for (size_t cut = 1; cut < problem.units.size(); ++cut) {
      std::vector<size_t> cuts = {0, problem.units.size()};
      if (problem.capacity.size() == 2)
        cuts.insert(cuts.begin() + 1, cut);
      bool lacks = false;
      for (size_t device = 0; device < problem.capacity.size(); ++device)
        lacks |= slack(cuts, device) < problem.reserved[device];
      EXPECT_TRUE(lacks);
    }
  }
  EXPECT_GT(fitted, 100);
  EXPECT_GT(refused, 100);
}

} // namespace
} // namespace strata::planner
