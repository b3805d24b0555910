#include "runtime/tokenizer/SpecialTokens.h"

#include <algorithm>

#include "runtime/tokenizer/CharacterClasses.h"

namespace strata {
namespace {

bool touchesWord(std::string_view text, size_t begin, size_t end) {
  return (begin > 0 && isWordCharacter(lastCharacter(text.substr(0, begin)))) ||
         (end < text.size() && isWordCharacter(firstCharacter(text.substr(end))));
}

} // namespace

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

/// The first place in `fragment` where a token of the group stands, or npos.
size_t SpecialTokens::findIn(const LengthGroup &group, std::string_view text,
                             std::string_view fragment, const Entry *&entry) const {
  for (size_t i = 0; i + group.length <= fragment.size(); ++i) {
    if (!group.firstBytes[uint8_t(fragment[i])] ||
        !group.lastBytes[uint8_t(fragment[i + group.length - 1])])
      continue;
    int32_t index = table_.find(fragment.substr(i, group.length));
    if (index < 0)
      continue;
    size_t place = size_t(fragment.data() - text.data()) + i;
    if (entries_[index].singleWord && touchesWord(text, place, place + group.length))
      continue;
    entry = &entries_[index];
    return i;
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
      const Entry *entry = nullptr;
      while (fragment.id < 0) {
        size_t place = findIn(group, text, fragment.text, entry);
        if (place == std::string_view::npos)
          break;
        size_t end = place + group.length;
        if (entry->stripRight)
          end += leadingWhiteSpace(fragment.text.substr(end));
        if (entry->stripLeft)
          place = withoutTrailingWhiteSpace(fragment.text.substr(0, place));
        if (place > 0)
          next.push_back({fragment.text.substr(0, place), -1});
        next.push_back({fragment.text.substr(place, end - place), entry->id});
        fragment.text.remove_prefix(end);
      }
      if (!fragment.text.empty())
        next.push_back(fragment);
    }
    fragments.swap(next);
  }
  return fragments;
}

} // namespace strata
