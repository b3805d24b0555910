// The MiniMalloc benchmark (hardware-accelerator compilers): hard problems, made to fit in exactly
// 1,048,576 bytes.
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

} // namespace
} // namespace strata::planner
