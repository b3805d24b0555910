#include "runtime/tokenizer/ByteMap.h"

#include <set>

#include <gtest/gtest.h>

#include "test/runtime/tokenizer/Vocabularies.h"

namespace strata {
namespace {

TEST(ByteMap, KnownPlaces) {
  EXPECT_EQ(printableOfByte(0), U'\u0100');
  EXPECT_EQ(printableOfByte(' '), U'\u0120');  // 0x20 is the 33rd of the bytes that move
  EXPECT_EQ(printableOfByte('\n'), U'\u010A'); // 0x0A is the 11th
  EXPECT_EQ(printableOfByte('!'), U'!');
  EXPECT_EQ(printableOfByte('~'), U'~');
  EXPECT_EQ(printableOfByte(0x7F), U'\u0121');
  EXPECT_EQ(printableOfByte(0xA0), U'\u0142'); // 33 + 1 + 32 moved before it
  EXPECT_EQ(printableOfByte(0xA1), U'\u00A1');
  EXPECT_EQ(printableOfByte(0xAD), U'\u0143'); // the last, 68th
  EXPECT_EQ(printableOfByte(0xFF), U'\u00FF');
}

TEST(ByteMap, IsOneToOne) {
  std::set<char32_t> seen;
  std::string bytes, text;
  for (int byte = 0; byte < 256; ++byte) {
    seen.insert(printableOfByte(uint8_t(byte)));
    bytes += char(byte);
  }
  EXPECT_EQ(seen.size(), 256u);
  EXPECT_TRUE(appendMappedBytes(test::printable(bytes), text));
  EXPECT_EQ(text, bytes);
}

TEST(ByteMap, OutsideTheMapNothingIsAppended) {
  std::string bytes = "kept";
  for (std::string_view text : {"a b", "a\u0144", "a\u00AD", "a\xFF", "a\xC4", "\U0001F680"})
    EXPECT_FALSE(appendMappedBytes(text, bytes)) << text;
  EXPECT_EQ(bytes, "kept");
}

} // namespace
} // namespace strata
