#include "runtime/checkpoint/Text.h"

#include <cstdint>

#include <fmt/format.h>

namespace strata {

bool isUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    auto lead = static_cast<uint8_t>(text[i++]);
    if (lead < 0x80)
      continue;
    // Length, and the range of the second byte that excludes overlong forms and surrogates.
    int following = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4)
      return false;
    uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    for (; following > 0; --following, low = 0x80, high = 0xBF) {
      if (i == text.size())
        return false;
      auto byte = static_cast<uint8_t>(text[i++]);
      if (byte < low || byte > high)
        return false;
    }
  }
  return true;
}

std::string printable(std::string_view name) {
  constexpr size_t limit = 80;
  std::string out;
  for (char c : name.substr(0, limit)) {
    if (c >= 0x20 && c < 0x7F)
      out += c;
    else
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
  }
  if (name.size() > limit)
    out += fmt::format("... ({} bytes)", name.size());
  return out;
}

} // namespace strata
