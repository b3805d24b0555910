// SentencePiece's precompiled character map: a double array (the form of Darts-clone) from byte
// sequences to places in a run of zero-terminated replacements.
//
//   u32 bytes of the array, the array (u32 units, little-endian), the replacements
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/Status.h"

namespace strata {

class CharacterMap {
public:
  /// Errors: InvalidData (lengths that disagree, no zero at the end, keys that are longer than 256
  /// bytes or never end).
  static Result<CharacterMap> create(std::string_view bytes);

  /// `text`, with the longest sequence that the map knows replaced at every place, from the left.
  /// Errors: ResourceExhausted (that has more than `mostBytes`).
  Result<std::string> apply(std::string_view text, size_t mostBytes) const;

private:
  CharacterMap() = default;

  /// The length of the longest known sequence that `text` begins with, and what it becomes.
  size_t longest(std::string_view text, std::string_view &replacement) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

} // namespace strata
