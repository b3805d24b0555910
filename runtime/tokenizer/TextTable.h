// From a token's text to its id: four bytes a slot, the texts stay where they are.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace strata {

/// Open addressing over ids. `TextOf` maps an id to its text; the texts must not change while the
/// table lives. Duplicate texts: the first inserted stays.
template <class TextOf> class TextTable {
public:
  TextTable(TextOf textOf, size_t capacity)
      : textOf_(std::move(textOf)), slots_(std::bit_ceil(capacity + capacity / 2 + 1), -1) {}

  /// At most `capacity` texts. Empty texts are left out: nothing may match nowhere.
  void insert(int32_t id) {
    std::string_view text = textOf_(id);
    if (text.empty())
      return;
    int32_t &slot = slots_[slotOf(text)];
    if (slot < 0)
      slot = id;
  }

  /// The id, or -1.
  int32_t find(std::string_view text) const { return slots_[slotOf(text)]; }

private:
  size_t slotOf(std::string_view text) const {
    size_t mask = slots_.size() - 1;
    size_t slot = std::hash<std::string_view>()(text) & mask;
    while (slots_[slot] >= 0 && textOf_(slots_[slot]) != text)
      slot = (slot + 1) & mask;
    return slot;
  }

  TextOf textOf_;
  std::vector<int32_t> slots_;
};

} // namespace strata
