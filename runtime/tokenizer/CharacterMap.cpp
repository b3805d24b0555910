#include "runtime/tokenizer/CharacterMap.h"

#include <algorithm>
#include <cstring>

#include "runtime/tokenizer/Utf8.h"

namespace strata {
namespace {

// A unit is an inner node (label and offset of its children) or a leaf (a value).
bool hasLeaf(uint32_t unit) { return unit >> 8 & 1; }
uint32_t labelOf(uint32_t unit) { return unit & 0x800000FFu; }
uint32_t offsetOf(uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }
uint32_t valueOf(uint32_t unit) { return unit & 0x7FFFFFFFu; }

// Keys are UTF-8 without zeros; units that no key uses may be anything else.
bool isOfKeys(uint32_t byte) { return byte > 0 && byte < 0xF5; }

// Keys of real maps have some tens.
constexpr size_t maxKeyBytes = 256;

/// The longest keys behind each node. Nodes may share what follows them, so each is counted once.
class Heights {
public:
  explicit Heights(const std::vector<uint32_t> &units) : units_(units), heights_(units.size()) {}

  /// Whether all keys have at most maxKeyBytes; in an array whose nodes follow themselves none has
  /// an end.
  bool areBounded() { return of(0, 0, 0) <= maxKeyBytes; }

private:
  size_t of(size_t node, size_t place, size_t depth) {
    if (heights_[node] != 0)
      return heights_[node] - 1;
    if (depth > maxKeyBytes)
      return depth;
    size_t height = 0;
    for (uint32_t label = 1; isOfKeys(label); ++label) {
      size_t child = (place ^ offsetOf(units_[node])) ^ label;
      if (child < units_.size() && labelOf(units_[child]) == label)
        height = std::max(height, 1 + of(child, child, depth + 1));
      if (height > maxKeyBytes)
        return height;
    }
    heights_[node] = uint16_t(height + 1);
    return height;
  }

  const std::vector<uint32_t> &units_;
  std::vector<uint16_t> heights_; ///< And 1; 0: not known.
};

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
  if (!Heights(map.units_).areBounded())
    return makeError(StatusCode::InvalidData,
                     "the character map has keys of more than {} bytes, or without an end",
                     maxKeyBytes);
  map.replacements_ = bytes.substr(arrayBytes);
  if (!map.replacements_.empty() && map.replacements_.back() != '\0')
    return makeError(StatusCode::InvalidData,
                     "the character map's {} bytes of replacements do not end with a zero",
                     map.replacements_.size());
  return map;
}

size_t CharacterMap::longest(std::string_view text, std::string_view &replacement) const {
  size_t length = 0, value = 0;
  size_t node = offsetOf(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    node ^= uint8_t(text[i]);
    if (!isOfKeys(uint8_t(text[i])) || node >= units_.size() ||
        labelOf(units_[node]) != uint8_t(text[i]))
      break;
    uint32_t unit = units_[node];
    node ^= offsetOf(unit);
    if (!hasLeaf(unit))
      continue;
    // Places outside an array that is damaged count as unknown.
    if (node >= units_.size() || valueOf(units_[node]) >= replacements_.size())
      break;
    length = i + 1;
    value = valueOf(units_[node]);
  }
  if (length > 0)
    replacement = replacements_.data() + value;
  return length;
}

Result<std::string> CharacterMap::apply(std::string_view text, size_t mostBytes) const {
  std::string out;
  size_t textBytes = text.size();
  out.reserve(text.size());
  while (!text.empty()) {
    std::string_view replacement;
    size_t length = longest(text, replacement);
    if (length == 0) {
      length = readUtf8(text.substr(0, 4)).length;
      replacement = text.substr(0, length);
    }
    if (replacement.size() > mostBytes - out.size())
      return makeError(StatusCode::ResourceExhausted,
                       "{} bytes become more than {} by the character map; encode them in parts",
                       textBytes, mostBytes);
    out += replacement;
    text.remove_prefix(length);
  }
  return out;
}

} // namespace strata
