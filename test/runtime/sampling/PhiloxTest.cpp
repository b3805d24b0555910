#include "runtime/sampling/Philox.h"

#include <set>

#include <gtest/gtest.h>

#include "runtime/sampling/Sampler.h"

namespace strata {
namespace {

using Words = std::array<uint32_t, 4>;

// The known answers that the authors publish with their code (Random123, kat_vectors).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformIsTheTop53BitsOfTheFirstTwoWords) {
  EXPECT_EQ(uniformAt(0, 0), double(0xe169c58d6627e8d5u >> 11) / 9007199254740992.0);
}

TEST(Philox, SeedAndPositionUseAllTheirBits) {
  std::set<double> seen;
  for (int bit = 0; bit < 64; ++bit) {
    seen.insert(uniformAt(uint64_t(1) << bit, 0));
    seen.insert(uniformAt(0, uint64_t(1) << bit));
  }
  EXPECT_EQ(seen.size(), 128u);
}

TEST(Philox, UniformFillsTheUnitInterval) {
  constexpr int bins = 64, draws = 64000; // 1000 a bin
  int counts[bins] = {};
  for (uint64_t position = 0; position < draws; ++position) {
    double u = uniformAt(12345, position);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++counts[int(u * bins)];
  }
  double chiSquared = 0;
  for (int count : counts)
    chiSquared += (count - 1000.0) * (count - 1000.0) / 1000.0;
  // 63 degrees of freedom: 99.99 % lie below 113.5, 0.01 % below 28.
  EXPECT_LT(chiSquared, 113.5);
  EXPECT_GT(chiSquared, 28.0);
}

} // namespace
} // namespace strata
