// The weight types against formulas written out a second time, and the conversions exhaustively.
#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/WeightTypeTable.h"
#include "runtime/checkpoint/WeightTypes.h"
#include "test/TestData.h"

namespace strata {
namespace {

uint32_t bitsOf(float value) { return std::bit_cast<uint32_t>(value); }

/// IEEE binary16 by its definition: (-1)^s * m * 2^e, evaluated in double, where all of it is
/// exact.
float halfByDefinition(uint16_t half) {
  int exponent = half >> 10 & 31, fraction = half & 1023;
  if (exponent == 31) { // infinity, or a NaN whose payload moves up
    uint32_t sign = uint32_t(half >> 15) << 31;
    return std::bit_cast<float>(sign | 0x7F800000u | uint32_t(fraction) << 13);
  }
  double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return float(half & 0x8000 ? -magnitude : magnitude);
}

TEST(WeightTypesTest, EveryHalfWidens) {
  for (uint32_t half = 0; half < 65536; ++half)
    ASSERT_EQ(bitsOf(halfToFloat(uint16_t(half))), bitsOf(halfByDefinition(uint16_t(half))))
        << half;
}

TEST(WeightTypesTest, EveryHalfSurvivesTheRoundTrip) {
  for (uint32_t half = 0; half < 65536; ++half) {
    float value = halfToFloat(uint16_t(half));
    if (std::isnan(value))
      ASSERT_EQ(floatToHalf(value), (half & 0x8000) | 0x7E00) << half;
    else
      ASSERT_EQ(floatToHalf(value), half);
  }
}

/// The half nearest to `value`, the even one of two: among all positive halves, by their distance
/// in double, with 65536 standing for infinity as IEEE's rounding has it.
uint16_t nearestHalf(float value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  double magnitude = std::fabs(double(value));
  auto at = [](uint16_t half) { return half == 0x7C00 ? 65536.0 : double(halfByDefinition(half)); };
  if (magnitude >= 65536.0)
    return sign | 0x7C00;
  uint16_t low = 0, high = 0x7C00; // at(low) <= magnitude < at(high)
  while (high - low > 1) {
    uint16_t middle = uint16_t((low + high) / 2);
    (at(middle) <= magnitude ? low : high) = middle;
  }
  double below = magnitude - at(low), above = at(high) - magnitude;
  return sign | (below < above || (below == above && low % 2 == 0) ? low : high);
}

TEST(WeightTypesTest, NarrowingRoundsToTheNearestEvenHalf) {
  std::mt19937 random(1);
  auto check = [](float value) {
    ASSERT_EQ(floatToHalf(value), nearestHalf(value)) << std::hexfloat << value;
  };
  // Every half and the points halfway to the next, and the floats on both sides of these.
  for (uint32_t half = 0; half < 0x7C00; ++half) {
    double here = halfByDefinition(uint16_t(half));
    double next = half == 0x7BFF ? 65536.0 : double(halfByDefinition(uint16_t(half + 1)));
    auto middle = float((here + next) / 2);
    for (float value :
         {float(here), middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)}) {
      check(value);
      check(-value);
    }
  }
  for (int i = 0; i < 200000; ++i)
    if (float value = std::bit_cast<float>(uint32_t(random())); !std::isnan(value))
      check(value);
  check(std::numeric_limits<float>::infinity());
  check(std::numeric_limits<float>::denorm_min());
}

TEST(WeightTypesTest, NarrowingToBfloatRoundsToTheNearestEven) {
  std::mt19937 random(2);
  for (int i = 0; i < 400000; ++i) {
    auto bits = uint32_t(random());
    if (i % 4 == 0)
      bits = (bits & 0xFFFF0000) | 0x8000; // ties
    float value = std::bit_cast<float>(bits);
    uint16_t narrowed = floatToBfloat(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(bfloatToFloat(narrowed)));
      continue;
    }
    uint32_t down = bits >> 16, rest = bits & 0xFFFF;
    bool up = rest > 0x8000 || (rest == 0x8000 && down % 2 == 1);
    ASSERT_EQ(narrowed, uint16_t(down + up)) << std::hex << bits;
  }
  EXPECT_EQ(bitsOf(bfloatToFloat(0x3FC0)), bitsOf(1.5f));
}

TEST(WeightTypesTest, TableHasEachTypeOnce) {
  for (const WeightType &type : weightTypes()) {
    EXPECT_EQ(findWeightType(type.name), &type);
    if (type.ggufId != noGgufId) {
      EXPECT_EQ(findWeightTypeByGgufId(type.ggufId), &type);
    }
  }
  EXPECT_EQ(findWeightType("q9_z"), nullptr);
  EXPECT_EQ(findWeightTypeByGgufId(noGgufId), nullptr);
  EXPECT_EQ(findWeightTypeByGgufId(7777), nullptr);
  for (const char *name : {"f32", "f16", "bf16", "q4_0", "q4_1", "q8_0"})
    EXPECT_NE(findWeightType(name), nullptr) << name;
}

TEST(WeightTypesTest, BytesForCountsWholeBlocks) {
  const WeightType &type = *findWeightType("q4_1");
  EXPECT_EQ(type.bytesFor(64), 40u); // 2 blocks of 20 bytes
  EXPECT_EQ(type.bytesFor(0), 0u);
  EXPECT_EQ(type.bytesFor(33), std::nullopt);
  EXPECT_EQ(findWeightType("f32")->bytesFor(uint64_t(1) << 62), std::nullopt);
}

/// Nibble `i` of 32, low nibbles first.
int nibble(const uint8_t *bytes, int i) { return i < 16 ? bytes[i] & 15 : bytes[i - 16] >> 4; }

/// Fills `block` with random bits whose scales are finite.
void randomBlock(std::mt19937 &random, uint8_t *block, uint32_t bytes, int scales) {
  for (uint32_t i = 0; i < bytes; ++i)
    block[i] = uint8_t(random());
  for (int s = 0; s < scales; ++s)
    if ((block[2 * s + 1] & 0x7C) == 0x7C)
      block[2 * s + 1] ^= 0x40;
}

template <class Expected> void expectBlocks(const char *name, int scales, Expected expected) {
  const WeightType &type = *findWeightType(name);
  std::mt19937 random(3);
  std::vector<uint8_t> row(type.blockBytes * 5 + 1);
  std::vector<float> out(type.blockElements * 5);
  for (int round = 0; round < 400; ++round) {
    uint8_t *blocks = row.data() + 1; // blocks have no alignment
    for (int b = 0; b < 5; ++b)
      randomBlock(random, blocks + b * type.blockBytes, type.blockBytes, scales);
    dequantiseRow(type, blocks, out.size(), out.data());
    for (size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(bitsOf(out[i]), bitsOf(expected(blocks + i / type.blockElements * type.blockBytes,
                                                int(i % type.blockElements))))
          << name << " element " << i;
  }
}

float halfAt(const uint8_t *bytes) { return halfByDefinition(uint16_t(bytes[0] | bytes[1] << 8)); }

// A product of a half and a small integer is exact in double too, so that narrowing rounds once.
TEST(WeightTypesTest, FirstSixEqualTheirFormulas) {
  expectBlocks("f32", 0, [](const uint8_t *b, int) {
    return std::bit_cast<float>(uint32_t(b[0]) | uint32_t(b[1]) << 8 | uint32_t(b[2]) << 16 |
                                uint32_t(b[3]) << 24);
  });
  expectBlocks("f16", 0, [](const uint8_t *b, int) { return halfAt(b); });
  expectBlocks("bf16", 0, [](const uint8_t *b, int) {
    return std::bit_cast<float>(uint32_t(b[0]) << 16 | uint32_t(b[1]) << 24);
  });
  expectBlocks("q4_0", 1, [](const uint8_t *b, int i) {
    return float(double(halfAt(b)) * (nibble(b + 2, i) - 8));
  });
  expectBlocks("q4_1", 2, [](const uint8_t *b, int i) {
    return float(double(halfAt(b)) * nibble(b + 4, i) + double(halfAt(b + 2)));
  });
  expectBlocks("q8_0", 1, [](const uint8_t *b, int i) {
    int value = b[2 + i] < 128 ? b[2 + i] : b[2 + i] - 256;
    return float(double(halfAt(b)) * value);
  });
}

TEST(WeightTypesTest, EveryE4M3Widens) {
  const WeightType &type = *findWeightType("f8_e4m3");
  for (int code = 0; code < 256; ++code) {
    auto byte = uint8_t(code);
    float value;
    type.dequantise(&byte, &value);
    int exponent = code >> 3 & 15, fraction = code & 7;
    if ((code & 0x7F) == 0x7F) {
      ASSERT_TRUE(std::isnan(value));
      continue;
    }
    double magnitude =
        exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
    ASSERT_EQ(bitsOf(value), bitsOf(float(code & 0x80 ? -magnitude : magnitude))) << code;
  }
}

TEST(WeightTypesTest, EqualTheReferenceVectors) {
  std::string path = test::testData("../models/vectors/quant_vectors.json");
  STRATA_REQUIRE_FILE(path);
  std::ifstream stream(path);
  nlohmann::json vectors = nlohmann::json::parse(stream)["types"];
  int compared = 0;
  for (const auto &[name, entry] : vectors.items()) {
    std::string lower = name;
    for (char &c : lower)
      c = char(std::tolower(c));
    const WeightType *type = findWeightType(lower);
    if (!type)
      continue;
    EXPECT_EQ(type->ggufId, entry["ggml_type"]);
    EXPECT_EQ(type->blockElements, entry["elems"]);
    ASSERT_EQ(type->blockBytes, entry["bytes_per_block"]);
    for (const auto &vector : entry["vectors"]) {
      std::string hex = vector["bytes"];
      std::vector<uint8_t> block;
      for (size_t i = 0; i < hex.size(); i += 2)
        block.push_back(uint8_t(std::stoi(hex.substr(i, 2), nullptr, 16)));
      ASSERT_EQ(block.size(), type->blockBytes);
      std::vector<float> out(type->blockElements);
      type->dequantise(block.data(), out.data());
      for (size_t i = 0; i < out.size(); ++i)
        ASSERT_EQ(bitsOf(out[i]), std::stoul(vector["f32_bits"][i].get<std::string>(), nullptr, 16))
            << name << " element " << i;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 12 * 3); // 12 of the file's 14 types, three blocks each
}

} // namespace
} // namespace strata
