#include "runtime/tokenizer/Utf8.h"

namespace strata {

Utf8Sequence readUtf8(std::string_view bytes) {
  auto byteAt = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  uint8_t lead = byteAt(0);
  if (lead < 0x80)
    return {Utf8Sequence::Character, 1, lead};
  if (lead < 0xC2 || lead > 0xF4)
    return {Utf8Sequence::Invalid, 1, 0};

  // The second byte's range is narrower after some leads (Unicode, table 3-7).
  uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  uint8_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  char32_t codePoint = lead & (0x7F >> length);
  for (uint8_t i = 1; i < length; ++i) {
    if (i == bytes.size())
      return {Utf8Sequence::Incomplete, i, 0};
    if (byteAt(i) < low || byteAt(i) > high)
      return {Utf8Sequence::Invalid, i, 0};
    codePoint = codePoint << 6 | (byteAt(i) & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return {Utf8Sequence::Character, length, codePoint};
}

} // namespace strata
