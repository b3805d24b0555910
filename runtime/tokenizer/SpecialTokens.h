// Cuts the tokens that are matched verbatim, before any merging, out of a text.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/TextTable.h"

namespace strata {

class SpecialTokens {
public:
  struct Entry {
    std::string text;
    int32_t id;
    bool stripLeft = false, stripRight = false; ///< White space beside it belongs to it.
    bool singleWord = false;                    ///< Not where a word character touches it.
  };

  /// A part of a text: a token where `id` >= 0, else text to merge. Never empty.
  struct Fragment {
    std::string_view text;
    int32_t id;
  };

  /// Of equal texts the first entry wins; empty texts never match.
  explicit SpecialTokens(std::vector<Entry> entries);

  /// The longest tokens are cut first, each at every place from the left, wherever no longer one
  /// was cut; so a long token wins over a shorter one that begins before it. O(n) for each distinct
  /// length (real vocabularies have a few dozen).
  std::vector<Fragment> split(std::string_view text) const;

private:
  struct TextOfEntry {
    const std::vector<Entry> *entries;
    std::string_view operator()(int32_t index) const { return (*entries)[index].text; }
  };
  struct LengthGroup {
    size_t length;
    std::bitset<256> firstBytes, lastBytes; ///< Rule out nearly every place before hashing.
  };

  SpecialTokens(const SpecialTokens &) = delete; // table_ points at entries_

  /// `fragment` is a part of `text`.
  size_t findIn(const LengthGroup &group, std::string_view text, std::string_view fragment,
                const Entry *&entry) const;

  std::vector<Entry> entries_;
  TextTable<TextOfEntry> table_;
  std::vector<LengthGroup> groups_; ///< Longest first.
};

} // namespace strata
