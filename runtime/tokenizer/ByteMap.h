// The map of byte-level BPE between bytes and printable code points, in which vocabularies and
// merges are written: 33-126, 161-172 and 174-255 stand for themselves, the other 68 bytes in
// increasing order are U+0100, U+0101, ... (a space is U+0120).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace strata {

char32_t printableOfByte(uint8_t byte);

/// Appends the bytes that `printable` stands for. False, with `bytes` as it was, where a character
/// is outside the map or the text is not UTF-8.
bool appendMappedBytes(std::string_view printable, std::string &bytes);

} // namespace strata
