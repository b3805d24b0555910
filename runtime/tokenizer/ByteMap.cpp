#include "runtime/tokenizer/ByteMap.h"

#include <array>

#include "runtime/tokenizer/Utf8.h"

namespace strata {
namespace {

struct Tables {
  std::array<char32_t, 256> printable;
  std::array<int16_t, 256 + 68> byte; ///< By code point; -1 outside the map.
};

constexpr Tables makeTables() {
  Tables tables{};
  tables.byte.fill(-1);
  char32_t next = 256;
  for (int b = 0; b < 256; ++b) {
    bool standsForItself = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    tables.printable[b] = standsForItself ? char32_t(b) : next++;
    tables.byte[tables.printable[b]] = int16_t(b);
  }
  return tables;
}

constexpr Tables tables = makeTables();

} // namespace

char32_t printableOfByte(uint8_t byte) { return tables.printable[byte]; }

bool appendMappedBytes(std::string_view printable, std::string &bytes) {
  size_t before = bytes.size();
  while (!printable.empty()) {
    Utf8Sequence sequence = readUtf8(printable);
    if (sequence.kind != Utf8Sequence::Character || sequence.codePoint >= tables.byte.size() ||
        tables.byte[sequence.codePoint] < 0) {
      bytes.resize(before);
      return false;
    }
    bytes.push_back(char(tables.byte[sequence.codePoint]));
    printable.remove_prefix(sequence.length);
  }
  return true;
}

} // namespace strata
