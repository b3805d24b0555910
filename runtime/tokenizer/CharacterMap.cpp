#include "runtime/tokenizer/CharacterMap.h"

#include <cstring>

#include "runtime/tokenizer/Utf8.h"

namespace strata {
namespace {

// A unit is an inner node (label and offset of its children) or a leaf (a value).
bool hasLeaf(uint32_t unit) { return unit >> 8 & 1; }
uint32_t labelOf(uint32_t unit) { return unit & 0x800000FFu; }
uint32_t offsetOf(uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }
uint32_t valueOf(uint32_t unit) { return unit & 0x7FFFFFFFu; }

} // namespace

Result<CharacterMap> CharacterMap::create(std::string_view bytes) {
  uint32_t arrayBytes = 0;
  if (bytes.size() >= sizeof arrayBytes)
    std::memcpy(&arrayBytes, bytes.data(), sizeof arrayBytes);
  if (bytes.size() < sizeof arrayBytes || arrayBytes == 0 || arrayBytes % 4 != 0 ||
      arrayBytes > bytes.size() - sizeof arrayBytes)
    return makeError(StatusCode::InvalidData,
                     "the character map of {} bytes states an array of {}; it must be a multiple "
                     "of 4 that lies in the map",
                     bytes.size(), arrayBytes);
  bytes.remove_prefix(sizeof arrayBytes);
  CharacterMap map;
  map.units_.resize(arrayBytes / 4);
  std::memcpy(map.units_.data(), bytes.data(), arrayBytes);
  map.replacements_ = bytes.substr(arrayBytes);
  if (!map.replacements_.empty() && map.replacements_.back() != '\0')
    return makeError(StatusCode::InvalidData,
                     "the character map's {} bytes of replacements do not end with a zero",
                     map.replacements_.size());
  return map;
}

size_t CharacterMap::longest(std::string_view text, std::string_view &replacement) const {
  size_t length = 0;
  size_t node = offsetOf(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    node ^= uint8_t(text[i]);
    if (node >= units_.size() || labelOf(units_[node]) != uint8_t(text[i]))
      break;
    uint32_t unit = units_[node];
    node ^= offsetOf(unit);
    if (!hasLeaf(unit))
      continue;
    // Places outside an array that is damaged count as unknown.
    if (node >= units_.size() || valueOf(units_[node]) >= replacements_.size())
      break;
    length = i + 1;
    replacement = replacements_.data() + valueOf(units_[node]);
  }
  return length;
}

std::string CharacterMap::apply(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::string_view replacement;
    size_t length = longest(text, replacement);
    if (length == 0) {
      length = readUtf8(text.substr(0, 4)).length;
      replacement = text.substr(0, length);
    }
    out += replacement;
    text.remove_prefix(length);
  }
  return out;
}

} // namespace strata
