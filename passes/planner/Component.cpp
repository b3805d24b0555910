#include "passes/planner/Component.h"

#include <algorithm>
#include <numeric>

namespace strata::planner {

namespace {

/// Items in the order of `ids`, with sections counted from the earliest.
std::vector<Item> findSections(const std::vector<Buffer> &buffers, const std::vector<uint32_t> &ids,
                               uint32_t &sections) {
  std::vector<uint32_t> starts(ids.size()), ends(ids.size());
  std::iota(starts.begin(), starts.end(), 0);
  std::iota(ends.begin(), ends.end(), 0);
  std::ranges::sort(starts, {}, [&](uint32_t k) { return buffers[ids[k]].lower; });
  std::ranges::sort(ends, {}, [&](uint32_t k) { return buffers[ids[k]].upper; });

  // A set of live buffers is maximal where an end follows a start.
  std::vector<Item> items(ids.size());
  uint32_t section = 0;
  bool ended = false;
  size_t nextStart = 0;
  for (uint32_t ending : ends) {
    for (; nextStart < starts.size() &&
           buffers[ids[starts[nextStart]]].lower < buffers[ids[ending]].upper;
         ++nextStart) {
      section += ended;
      ended = false;
      items[starts[nextStart]].first = section;
    }
    items[ending].last = section;
    items[ending].size = buffers[ids[ending]].size;
    // Unsigned: the whole range of Time is a lifetime too.
    items[ending].length =
        uint64_t(buffers[ids[ending]].upper) - uint64_t(buffers[ids[ending]].lower);
    ended = true;
  }
  sections = section + 1;
  return items;
}

std::vector<uint32_t> sortedOrder(const std::vector<Item> &items) {
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](uint32_t k) { return items[k]; });
  return order;
}

} // namespace

Component makeComponent(const std::vector<Buffer> &buffers, std::vector<uint32_t> &ids) {
  Component component;
  std::vector<Item> items = findSections(buffers, ids, component.sections);

  Bytes unit = 0;
  for (const Item &item : items)
    unit = std::gcd(unit, item.size);
  component.unit = unit;
  for (Item &item : items)
    item.size /= unit;

  std::vector<Item> mirrored = items;
  for (Item &item : mirrored)
    item = {component.sections - 1 - item.last, component.sections - 1 - item.first, item.size,
            item.length};

  auto permuted = [](const std::vector<Item> &from, const std::vector<uint32_t> &order) {
    std::vector<Item> to;
    to.reserve(from.size());
    for (uint32_t k : order)
      to.push_back(from[k]);
    return to;
  };
  std::vector<uint32_t> order = sortedOrder(items), mirroredOrder = sortedOrder(mirrored);
  items = permuted(items, order);
  mirrored = permuted(mirrored, mirroredOrder);
  if (mirrored < items) {
    items.swap(mirrored);
    order.swap(mirroredOrder);
  }
  component.items = std::move(items);

  std::vector<uint32_t> sortedIds;
  sortedIds.reserve(ids.size());
  for (uint32_t k : order)
    sortedIds.push_back(ids[k]);
  ids = std::move(sortedIds);

  std::vector<Bytes> change(component.sections + 1, 0);
  for (const Item &item : component.items) {
    change[item.first] += item.size;
    change[item.last + 1] -= item.size;
  }
  Bytes live = 0;
  for (Bytes delta : change) {
    live += delta;
    component.lowerBound = std::max(component.lowerBound, live);
  }
  return component;
}

uint64_t Overlaps::countPairs(const Component &component) {
  // Items are sorted by `first`: an item overlaps those behind it that start no later than it ends.
  std::vector<uint32_t> startedBy(component.sections, 0);
  for (const Item &item : component.items)
    ++startedBy[item.first];
  std::partial_sum(startedBy.begin(), startedBy.end(), startedBy.begin());
  uint64_t pairs = 0;
  for (size_t k = 0; k < component.items.size(); ++k)
    pairs += startedBy[component.items[k].last] - k - 1;
  return 2 * pairs;
}

Overlaps::Overlaps(const Component &component) {
  const std::vector<Item> &items = component.items;
  begin_.assign(items.size() + 1, 0);
  auto forEachPair = [&](auto &&visit) {
    for (uint32_t a = 0; a < items.size(); ++a)
      for (uint32_t b = a + 1; b < items.size() && items[b].first <= items[a].last; ++b)
        visit(a, b);
  };
  forEachPair([&](uint32_t a, uint32_t b) { ++begin_[a + 1], ++begin_[b + 1]; });
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  neighbours_.resize(begin_.back());
  std::vector<size_t> cursor(begin_.begin(), begin_.end() - 1);
  forEachPair([&](uint32_t a, uint32_t b) {
    neighbours_[cursor[a]++] = b;
    neighbours_[cursor[b]++] = a;
  });
}

Bytes peakOf(const Component &component, const std::vector<Bytes> &offsets) {
  Bytes peak = 0;
  for (size_t k = 0; k < offsets.size(); ++k)
    peak = std::max(peak, offsets[k] + component.items[k].size);
  return peak;
}

} // namespace strata::planner
