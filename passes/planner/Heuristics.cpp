#include "passes/planner/Heuristics.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

namespace strata::planner {

namespace {

/// Visited pairs: up to a second each.
constexpr uint64_t kOrdersWork = 60'000'000;
constexpr uint64_t kRepairWork = 30'000'000;
constexpr int kRepairRounds = 100; ///< What is small enough for more is better searched.

/// Free blocks of an address range that can grow at its end.
class FreeBlocks {
public:
  Bytes take(Bytes size) {
    auto fit = bySize_.lower_bound({size, 0});
    if (fit != bySize_.end()) {
      auto [blockSize, offset] = *fit;
      remove(offset, blockSize);
      if (blockSize > size)
        add(offset + size, blockSize - size);
      return offset;
    }
    // The last block, where it touches the end, grows.
    Bytes offset = end_;
    if (!byOffset_.empty()) {
      auto last = std::prev(byOffset_.end());
      if (last->first + last->second == end_) {
        offset = last->first;
        remove(last->first, last->second);
      }
    }
    end_ = offset + size;
    return offset;
  }

  void give(Bytes offset, Bytes size) {
    auto next = byOffset_.lower_bound(offset);
    if (next != byOffset_.begin()) {
      auto previous = std::prev(next);
      if (previous->first + previous->second == offset) {
        offset = previous->first;
        size += previous->second;
        remove(previous->first, previous->second);
      }
    }
    next = byOffset_.lower_bound(offset);
    if (next != byOffset_.end() && offset + size == next->first) {
      size += next->second;
      remove(next->first, next->second);
    }
    add(offset, size);
  }

private:
  void add(Bytes offset, Bytes size) {
    byOffset_.emplace(offset, size);
    bySize_.emplace(size, offset);
  }
  void remove(Bytes offset, Bytes size) {
    byOffset_.erase(offset);
    bySize_.erase({size, offset});
  }

  Bytes end_ = 0;
  std::map<Bytes, Bytes> byOffset_;
  std::set<std::pair<Bytes, Bytes>> bySize_;
};

enum class Fit { First, Best };

/// Places items one after another among those that overlap them.
class Placer {
public:
  Placer(const Component &component, const Overlaps &overlaps)
      : component_(component), overlaps_(overlaps), placed_(component.items.size()) {}

  /// Stops where an item ends above `limit`; returns whether all were placed.
  bool place(const std::vector<uint32_t> &order, Fit fit, Bytes limit,
             std::vector<Bytes> &offsets) {
    std::ranges::fill(placed_, false);
    for (uint32_t item : order) {
      offsets[item] = findOffset(item, fit, offsets);
      if (offsets[item] + component_.items[item].size > limit)
        return false;
      placed_[item] = true;
    }
    return true;
  }

  uint64_t work() const { return work_; }

private:
  Bytes findOffset(uint32_t item, Fit fit, const std::vector<Bytes> &offsets) {
    busy_.clear();
    for (uint32_t other : overlaps_.of(item))
      if (placed_[other])
        busy_.push_back({offsets[other], offsets[other] + component_.items[other].size});
    work_ += overlaps_.of(item).size() + 1;
    std::ranges::sort(busy_);

    Bytes size = component_.items[item].size;
    Bytes floor = 0, best = -1, bestGap = 0;
    for (auto [begin, end] : busy_) {
      Bytes gap = begin - floor;
      if (gap >= size && (best < 0 || gap < bestGap)) {
        best = floor;
        bestGap = gap;
        if (fit == Fit::First)
          break;
      }
      floor = std::max(floor, end);
    }
    return best < 0 ? floor : best;
  }

  const Component &component_;
  const Overlaps &overlaps_;
  std::vector<uint8_t> placed_;
  std::vector<std::pair<Bytes, Bytes>> busy_;
  uint64_t work_ = 0;
};

/// Per item, what orders are made of.
struct Measures {
  std::vector<double> size, length, area, congestion, conflict;

  Measures(const Component &component, const Overlaps &overlaps) {
    const std::vector<Item> &items = component.items;
    std::vector<Bytes> live(component.sections, 0), change(component.sections + 1, 0);
    for (const Item &item : items) {
      change[item.first] += item.size;
      change[item.last + 1] -= item.size;
    }
    std::partial_sum(change.begin(), change.end() - 1, live.begin());
    for (uint32_t k = 0; k < items.size(); ++k) {
      const Item &item = items[k];
      size.push_back(double(item.size));
      length.push_back(item.last - item.first + 1);
      area.push_back(size.back() * length.back());
      double neighbours = 0;
      for (uint32_t other : overlaps.of(k))
        neighbours += double(items[other].size);
      conflict.push_back(neighbours);
      congestion.push_back(
          double(*std::max_element(live.begin() + item.first, live.begin() + item.last + 1)));
    }
  }
};

} // namespace

std::vector<Bytes> placeInTimeOrder(const Component &component, bool backward) {
  const std::vector<Item> &items = component.items;
  uint32_t count = uint32_t(items.size());
  auto start = [&](uint32_t k) {
    return backward ? component.sections - 1 - items[k].last : items[k].first;
  };
  auto end = [&](uint32_t k) {
    return backward ? component.sections - 1 - items[k].first : items[k].last;
  };
  std::vector<uint32_t> starts(count), ends(count);
  std::iota(starts.begin(), starts.end(), 0);
  std::iota(ends.begin(), ends.end(), 0);
  // Of those that start together the large go first.
  std::ranges::stable_sort(starts, {},
                           [&](uint32_t k) { return std::pair(start(k), -items[k].size); });
  std::ranges::stable_sort(ends, {}, end);

  std::vector<Bytes> offsets(count);
  FreeBlocks blocks;
  size_t nextEnd = 0;
  for (uint32_t item : starts) {
    for (; nextEnd < count && end(ends[nextEnd]) < start(item); ++nextEnd)
      blocks.give(offsets[ends[nextEnd]], items[ends[nextEnd]].size);
    offsets[item] = blocks.take(items[item].size);
  }
  return offsets;
}

void improveByOrders(const Component &component, const Overlaps &overlaps, Bytes goal,
                     std::vector<Bytes> &offsets) {
  uint32_t count = uint32_t(component.items.size());
  Measures measures(component, overlaps);
  Placer placer(component, overlaps);
  Bytes peak = peakOf(component, offsets);
  std::vector<Bytes> attempt(count);
  std::vector<uint32_t> order(count), bestOrder;
  Bytes bestOrderPeak = std::numeric_limits<Bytes>::max();

  auto lexicographic = [](const std::vector<double> &a, const std::vector<double> &b) {
    std::vector<std::pair<double, double>> keys;
    for (size_t k = 0; k < a.size(); ++k)
      keys.push_back({a[k], b[k]});
    return keys;
  };
  const std::array keys = {
      lexicographic(measures.size, measures.length),
      lexicographic(measures.length, measures.size),
      lexicographic(measures.area, measures.size),
      lexicographic(measures.congestion, measures.size),
      lexicographic(measures.congestion, measures.area),
      lexicographic(measures.conflict, measures.size),
  };
  for (const auto &key : keys)
    for (Fit fit : {Fit::First, Fit::Best}) {
      if (peak <= goal || placer.work() > kOrdersWork)
        return;
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, std::greater(), [&](uint32_t k) { return key[k]; });
      placer.place(order, fit, std::numeric_limits<Bytes>::max(), attempt);
      Bytes attemptPeak = peakOf(component, attempt);
      if (attemptPeak < peak) {
        peak = attemptPeak;
        offsets = attempt;
      }
      if (fit == Fit::First && attemptPeak < bestOrderPeak) {
        bestOrderPeak = attemptPeak;
        bestOrder = order;
      }
    }

  // Repair: the items that end too high move to an earlier place in the order, over and over.
  std::vector<uint64_t> position(count);
  order = bestOrder;
  uint64_t random = 0x9e3779b97f4a7c15;
  uint64_t until = placer.work() + kRepairWork;
  for (int round = 0; round < kRepairRounds && peak > goal && placer.work() < until; ++round) {
    placer.place(order, Fit::First, std::numeric_limits<Bytes>::max(), attempt);
    Bytes attemptPeak = peakOf(component, attempt);
    if (attemptPeak < peak) {
      peak = attemptPeak;
      offsets = attempt;
    }
    for (uint32_t k = 0; k < count; ++k)
      position[order[k]] = k;
    for (uint32_t k = 0; k < count; ++k)
      if (attempt[k] + component.items[k].size > goal) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        position[k] = position[k] * (random >> 40) >> 24;
      }
    std::ranges::stable_sort(order, {}, [&](uint32_t k) { return position[k]; });
  }
}

} // namespace strata::planner
