#include "passes/planner/Minimise.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "passes/planner/Heuristics.h"
#include "passes/planner/Search.h"

namespace strata::planner {

namespace {

/// Above this many ordered pairs (256 MiB) only the sweeps over time run.
constexpr uint64_t kMaximumPairs = 64'000'000;
/// The search recurses once an item, so this bounds its stack as well.
constexpr size_t kMaximumSearchItems = 10'000;

/// Runs the search from several orders in turns that grow: which order finds an answer early is luck, and
/// no order may take all the nodes.
class Portfolio {
public:
  Portfolio(const Component &component, const Overlaps &overlaps, uint64_t nodeLimit)
      : search_(component, overlaps), nodeLimit_(nodeLimit) {
    const std::vector<Item> &items = component.items;
    auto length = [&](uint32_t k) { return items[k].length; };
    auto size = [&](uint32_t k) { return items[k].size; };
    auto area = [&](uint32_t k) { return double(length(k)) * double(size(k)); };
    std::vector<Bytes> change(component.sections + 1, 0), live(component.sections, 0);
    for (const Item &item : items) {
      change[item.first] += item.size;
      change[item.last + 1] -= item.size;
    }
    std::partial_sum(change.begin(), change.end() - 1, live.begin());
    auto total = [&](uint32_t k) {
      return *std::max_element(live.begin() + items[k].first, live.begin() + items[k].last + 1);
    };
    addOrder(items.size(), [&](uint32_t k) { return std::tuple(total(k), area(k), length(k)); });
    addOrder(items.size(), [&](uint32_t k) { return std::tuple(total(k), length(k), area(k)); });
    addOrder(items.size(), [&](uint32_t k) { return std::tuple(length(k), area(k), total(k)); });
    addOrder(items.size(), [&](uint32_t k) { return std::tuple(area(k), length(k)); });
    addOrder(items.size(), [&](uint32_t k) { return std::tuple(size(k), length(k)); });
  }

  Outcome decide(Bytes capacity, uint64_t nodeBudget) {
    uint64_t until = std::min(nodeLimit_, search_.nodes() + nodeBudget);
    for (uint64_t turn = kFirstTurn;; turn *= 2)
      for (const std::vector<uint32_t> &rank : ranks_) {
        if (search_.nodes() >= until)
          return Outcome::Limit;
        uint64_t nodes = std::min(turn, until - search_.nodes());
        Outcome outcome = search_.run(capacity, rank, nodes);
        if (outcome != Outcome::Limit)
          return outcome;
      }
  }

  const std::vector<Bytes> &offsets() const { return search_.offsets(); }
  uint64_t nodes() const { return search_.nodes(); }

private:
  static constexpr uint64_t kFirstTurn = 4'000;

  /// The largest key comes first.
  template <class Key> void addOrder(size_t count, Key key) {
    std::vector<uint32_t> order(count), rank(count);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater(), key);
    for (uint32_t k = 0; k < count; ++k)
      rank[order[k]] = k;
    ranks_.push_back(std::move(rank));
  }

  Search search_;
  uint64_t nodeLimit_;
  std::vector<std::vector<uint32_t>> ranks_;
};

} // namespace

Attempt firstAttempt(const Component &component) {
  Attempt attempt;
  attempt.lowerBound = component.lowerBound;
  attempt.offsets = placeInTimeOrder(component, false);
  attempt.peak = peakOf(component, attempt.offsets);
  std::vector<Bytes> other = placeInTimeOrder(component, true);
  if (Bytes peak = peakOf(component, other); peak < attempt.peak) {
    attempt.offsets = std::move(other);
    attempt.peak = peak;
  }
  return attempt;
}

uint64_t minimise(const Component &component, const MinimiseOptions &options, Attempt &attempt) {
  if (attempt.peak <= options.goal || Overlaps::countPairs(component) > kMaximumPairs)
    return 0;
  Overlaps overlaps(component);
  improveByOrders(component, overlaps, options.goal, attempt.offsets);
  attempt.peak = peakOf(component, attempt.offsets);
  if (attempt.peak <= options.goal || component.items.size() > kMaximumSearchItems)
    return 0;

  Portfolio portfolio(component, overlaps, options.nodeLimit);
  auto decide = [&](Bytes capacity, uint64_t nodeBudget) {
    Outcome outcome = portfolio.decide(capacity, nodeBudget);
    if (outcome == Outcome::Found) {
      attempt.offsets = portfolio.offsets();
      attempt.peak = peakOf(component, attempt.offsets);
    } else if (outcome == Outcome::Exhausted) {
      attempt.lowerBound = std::max(attempt.lowerBound, capacity + 1);
    }
    return outcome;
  };

  Bytes low = std::max(attempt.lowerBound, options.goal);
  uint64_t nodeBudget = options.decideOnly ? options.nodeLimit : options.nodeLimit / 2;
  if (decide(low, nodeBudget) == Outcome::Found || options.decideOnly)
    return portfolio.nodes();
  // The optimum lies above `low` or is out of reach there: halve what lies between.
  ++low;
  while (low < attempt.peak && portfolio.nodes() < options.nodeLimit) {
    Bytes middle = low + (attempt.peak - 1 - low) / 2;
    if (decide(middle, options.nodeLimit / 8) != Outcome::Found)
      low = middle + 1;
  }
  return portfolio.nodes();
}

} // namespace strata::planner
