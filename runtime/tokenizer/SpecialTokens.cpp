#include "runtime/tokenizer/SpecialTokens.h"

#include <algorithm>

namespace strata {

SpecialTokens::SpecialTokens(std::vector<Entry> entries)
    : entries_(std::move(entries)), table_(TextOfEntry{&entries_}, entries_.size()) {
  std::vector<size_t> lengths;
  for (size_t i = 0; i < entries_.size(); ++i) {
    table_.insert(int32_t(i));
    if (!entries_[i].text.empty())
      lengths.push_back(entries_[i].text.size());
  }
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  for (size_t length : lengths)
    groups_.push_back({length, {}, {}});
  for (const Entry &entry : entries_) {
    if (entry.text.empty())
      continue;
    auto group = std::lower_bound(
        groups_.begin(), groups_.end(), entry.text.size(),
        [](const LengthGroup &group, size_t length) { return group.length > length; });
    group->firstBytes.set(uint8_t(entry.text.front()));
    group->lastBytes.set(uint8_t(entry.text.back()));
  }
}

/// The first place in `text` where a token of the group stands, or npos.
size_t SpecialTokens::findIn(const LengthGroup &group, std::string_view text, int32_t &id) const {
  for (size_t i = 0; i + group.length <= text.size(); ++i) {
    if (!group.firstBytes[uint8_t(text[i])] ||
        !group.lastBytes[uint8_t(text[i + group.length - 1])])
      continue;
    int32_t entry = table_.find(text.substr(i, group.length));
    if (entry >= 0) {
      id = entries_[entry].id;
      return i;
    }
  }
  return std::string_view::npos;
}

std::vector<SpecialTokens::Fragment> SpecialTokens::split(std::string_view text) const {
  std::vector<Fragment> fragments;
  if (!text.empty())
    fragments.push_back({text, -1});
  std::vector<Fragment> next;
  for (const LengthGroup &group : groups_) {
    if (group.length > text.size())
      continue;
    next.clear();
    for (Fragment fragment : fragments) {
      int32_t id = -1;
      while (fragment.id < 0) {
        size_t place = findIn(group, fragment.text, id);
        if (place == std::string_view::npos)
          break;
        if (place > 0)
          next.push_back({fragment.text.substr(0, place), -1});
        next.push_back({fragment.text.substr(place, group.length), id});
        fragment.text.remove_prefix(place + group.length);
      }
      if (!fragment.text.empty())
        next.push_back(fragment);
    }
    fragments.swap(next);
  }
  return fragments;
}

} // namespace strata
