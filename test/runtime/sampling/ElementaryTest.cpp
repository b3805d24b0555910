#include "runtime/sampling/Elementary.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace strata {
namespace {

TEST(Elementary, ExponentialIsWithinTwoUlps) {
  double worst = 0;
  for (int i = 0; i <= 870'000; ++i) {
    float x = -float(i) * 1e-4f;
    double exact = std::exp(double(x));
    auto nearest = float(exact);
    double ulp = double(std::nextafter(nearest, 2.0f)) - double(nearest);
    worst = std::max(worst, std::abs(double(exponential(x)) - exact) / ulp);
  }
  EXPECT_LT(worst, 2.0);
}

TEST(Elementary, ExponentialAtItsEdges) {
  EXPECT_EQ(exponential(0.0f), 1.0f);
  EXPECT_EQ(exponential(-0.0f), 1.0f);
  EXPECT_GT(exponential(-87.0f), std::numeric_limits<float>::min());
  EXPECT_EQ(exponential(-87.001f), 0.0f);
  EXPECT_EQ(exponential(-1e30f), 0.0f);
  EXPECT_EQ(exponential(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_EQ(exponential(std::numeric_limits<float>::quiet_NaN()), 0.0f);
}

TEST(Elementary, LogarithmIsWithinTwoUlpsOfTheLibrarys) {
  EXPECT_EQ(logarithm(1.0), 0.0);
  for (int i = 1; i < 100'000; ++i) {
    double x = 1.0 + 1e-5 * i * i; // to 1e5
    EXPECT_NEAR(logarithm(x), std::log(x), 1e-15 + 5e-16 * std::log(x)) << x;
  }
  EXPECT_NEAR(logarithm(1e300), std::log(1e300), 1e-12);
}

} // namespace
} // namespace strata
