// The MiniMalloc benchmark (hardware-accelerator compilers): hard problems, made to fit in exactly
// 1,048,576 bytes.
#include <random>

#include <gtest/gtest.h>

#include "passes/planner/Planner.h"
#include "test/TestData.h"
#include "tools/pack/ProblemFile.h"

namespace strata::planner {
namespace {

struct Case {
  const char *file;
  Bytes capacity;
  Bytes maximumLive;
};

class Benchmark : public testing::TestWithParam<Case> {};

TEST_P(Benchmark, FitsInItsCapacity) {
  STRATA_REQUIRE_TEST_DATA("minimalloc");
  std::string path = test::testData(std::string("minimalloc/") + GetParam().file);
  Result<pack::ProblemFile> file = pack::readProblem(path);
  ASSERT_TRUE(file.isOk()) << file.status().toString();
  Problem problem;
  problem.buffers = file->buffers;
  problem.capacity = GetParam().capacity;
  Solution solution = solve(problem);
  EXPECT_FALSE(check(problem.buffers, solution.offsets));
  EXPECT_EQ(maximumLiveBytes(problem.buffers), GetParam().maximumLive);
  EXPECT_GE(solution.lowerBound, GetParam().maximumLive);
  EXPECT_LE(solution.peak, GetParam().capacity);
  // Where the capacity is the maximum of live bytes, a fit is the optimum.
  EXPECT_EQ(solution.proven, solution.peak == solution.lowerBound);
}

INSTANTIATE_TEST_SUITE_P(MiniMalloc, Benchmark,
                         testing::Values(Case{"C.1048576.csv", 1048576, 1039360},
                                         Case{"D.1048576.csv", 1048576, 986112},
                                         Case{"G.1048576.csv", 1048576, 1048576},
                                         Case{"I.1048576.csv", 1048576, 1048576},
                                         Case{"J.1048576.csv", 1048576, 989184},
                                         Case{"input.12.csv", 12, 12}),
                         [](const auto &info) {
                           std::string name = info.param.file;
                           return name.substr(0, name.find('.'));
                         });

struct Rectangle {
  Time left;
  Bytes bottom;
  Time width;
  Bytes height;
};

/// A rectangle of `side` x `side` cut into `pieces`: straight through, or, with `spirals`, also
/// into five that turn around the middle one, which no straight cuts can make. Every byte is used
/// at every time, so a placement that fits repeats a perfect packing.
std::vector<Buffer> cutSquare(uint64_t seed, size_t pieces, bool spirals, int64_t side) {
  std::mt19937_64 random(seed);
  auto between = [&](int64_t least, int64_t most) {
    return least + int64_t(random() % uint64_t(most - least + 1));
  };
  std::vector<Rectangle> rectangles = {{0, 0, side, side}};
  while (rectangles.size() < pieces) {
    // The largest of a few.
    size_t chosen = random() % rectangles.size();
    for (size_t k = 0; k < rectangles.size() / 4; ++k) {
      size_t other = random() % rectangles.size();
      if (rectangles[other].width * rectangles[other].height >
          rectangles[chosen].width * rectangles[chosen].height)
        chosen = other;
    }
    auto [x, y, w, h] = rectangles[chosen];
    if (w < 8 || h < 8)
      continue;
    rectangles.erase(rectangles.begin() + chosen);
    if (spirals && random() % 2) {
      int64_t a = between(1, w - 2), b = between(a + 1, w - 1);
      int64_t c = between(1, h - 2), d = between(c + 1, h - 1);
      for (Rectangle piece : {Rectangle{x, y, b, c},
                              {x + b, y, w - b, d},
                              {x + a, y + d, w - a, h - d},
                              {x, y + c, a, h - c},
                              {x + a, y + c, b - a, d - c}})
        rectangles.push_back(piece);
    } else if (random() % 2) {
      Bytes cut = between(h / 8, h - h / 8);
      rectangles.insert(rectangles.end(), {{x, y, w, cut}, {x, y + cut, w, h - cut}});
    } else {
      Time cut = between(w / 8, w - w / 8);
      rectangles.insert(rectangles.end(), {{x, y, cut, h}, {x + cut, y, w - cut, h}});
    }
  }
  std::vector<Buffer> buffers;
  for (const Rectangle &piece : rectangles)
    buffers.push_back({piece.left, piece.left + piece.width, piece.height});
  return buffers;
}

TEST(PerfectPacking, IsFoundAgain) {
  for (bool spirals : {false, true})
    for (size_t pieces : {150, 200})
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        Problem problem;
        problem.buffers = cutSquare(seed, pieces, spirals, 1024);
        problem.capacity = 1024;
        Solution solution = solve(problem);
        EXPECT_FALSE(check(problem.buffers, solution.offsets));
        EXPECT_EQ(solution.lowerBound, 1024);
        EXPECT_EQ(solution.peak, 1024)
            << problem.buffers.size() << " pieces, seed " << seed << ", spirals " << spirals;
      }
}

} // namespace
} // namespace strata::planner
