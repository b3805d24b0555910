// What Python's str methods know of Unicode beyond ASCII, as sorted ranges (written by
// unicode_tables.py).
#pragma once

#include <array>
#include <cstdint>

namespace strata::chat {

struct CharacterRange {
  char32_t first, last; ///< Inclusive.
};

/// Characters first, first + stride, ..., last become themselves + delta.
struct CaseShift {
  char32_t first, last;
  uint32_t stride;
  int32_t delta;
};

/// A character that becomes several (at most three).
struct CaseExpansion {
  char32_t from;
  const char32_t *to;
};

extern const std::array<CharacterRange, 701> unprintableRanges;
extern const std::array<CharacterRange, 646> alphabeticRanges;
extern const std::array<CharacterRange, 61> decimalRanges;
extern const std::array<CharacterRange, 80> digitRanges;
extern const std::array<CharacterRange, 205> numericRanges;
extern const std::array<CaseShift, 193> upperShifts;
extern const std::array<CaseShift, 180> lowerShifts;
extern const std::array<CaseShift, 195> titleShifts;
extern const std::array<CaseExpansion, 102> upperExpansions;
extern const std::array<CaseExpansion, 1> lowerExpansions;
extern const std::array<CaseExpansion, 48> titleExpansions;

} // namespace strata::chat
