#include "passes/planner/Minimise.h"

#include <algorithm>
#include <numeric>

#include "passes/planner/Heuristics.h"
#include "passes/planner/Search.h"

namespace strata::planner {

namespace {

/// Above this many ordered pairs (256 MiB) only the sweeps over time run.
constexpr uint64_t kMaximumPairs = 64'000'000;
/// The search recurses once an item, so this bounds its stack as well.
constexpr size_t kMaximumSearchItems = 10'000;

/// How many times the shortest turn those of the `index`-th round are long: 4^k where 4^k divides
/// it. Answers come almost straight or hardly ever, and nobody knows which length would do, so
/// every length gets the same share of the nodes; and as the longest grow without end, a search
/// that must be exhausted is.
uint64_t turnLength(uint64_t index) {
  uint64_t length = 1;
  for (; index % 4 == 0; index /= 4)
    length *= 4;
  return length;
}

/// Runs the search from many orders in short turns. An order says which sections to fill first;
/// most orders meet a dead end early that they leave too late, and a few lead straight to an
/// answer.
class Portfolio {
public:
  Portfolio(const Component &component, const Overlaps &overlaps, uint64_t nodeLimit)
      : component_(component), overlaps_(overlaps), search_(component, overlaps),
        nodeLimit_(nodeLimit), live_(component.sections, 0), bonus_(component.sections, 0) {
    std::vector<Bytes> change(component.sections + 1, 0);
    for (const Item &item : component.items) {
      change[item.first] += item.size;
      change[item.last + 1] -= item.size;
    }
    std::partial_sum(change.begin(), change.end() - 1, live_.begin());
  }

  Outcome decide(Bytes capacity, uint64_t nodeBudget) {
    // What a turn may use counts, not what it used: large nodes end a turn early.
    uint64_t left = std::min(nodeBudget, nodeLimit_ - std::min(nodeLimit_, granted_));
    uint64_t shortest = std::max<uint64_t>(2 * component_.items.size(), kShortestTurn);
    for (uint64_t turn = 0; left > 0; ++turn) {
      uint64_t round = turn / kMeasures;
      // The plain orders come once: longer, and before anything is learnt.
      uint64_t nodes =
          std::min(round == 0 ? kFirstTurns * shortest : shortest * turnLength(round), left);
      left -= nodes;
      granted_ += nodes;
      Outcome outcome = search_.run(capacity, makeRank(turn), nodes);
      if (outcome != Outcome::Limit)
        return outcome;
      if (round > 0)
        learn();
    }
    return Outcome::Limit;
  }

  const std::vector<Bytes> &offsets() const { return search_.offsets(); }
  uint64_t nodes() const { return search_.nodes(); }
  bool isSpent() const { return granted_ >= nodeLimit_; }

private:
  static constexpr uint64_t kShortestTurn = 200;
  static constexpr uint64_t kFirstTurns = 8;
  static constexpr uint64_t kMeasures = 8;

  /// What became full too early goes earlier next time; old failures fade.
  void learn() {
    const std::vector<uint64_t> &failures = search_.failures();
    double sum = double(std::accumulate(failures.begin(), failures.end(), uint64_t(0)));
    for (size_t s = 0; s < bonus_.size(); ++s)
      bonus_[s] = 0.95 * bonus_[s] + (sum > 0 ? 0.75 * double(failures[s]) / sum : 0);
  }

  /// The greatest of some measure first. Even turns put the items of the fullest sections before
  /// all others, odd turns weigh the measure by fullness. From the second round on every value is
  /// taken up to a fifth higher.
  std::vector<uint32_t> makeRank(uint64_t turn) {
    const std::vector<Item> &items = component_.items;
    std::vector<double> fullness(live_.begin(), live_.end());
    auto vary = [&](double value) {
      return turn < kMeasures ? value : value * (1 + 0.2 * nextRandom());
    };
    for (size_t s = 0; s < fullness.size(); ++s)
      fullness[s] = vary(fullness[s]) * (1 + bonus_[s]);
    auto measure = [&](uint32_t k) {
      const Item &item = items[k];
      switch (turn % kMeasures / 2) {
      case 0:
        return double(item.length);
      case 1:
        return double(item.last - item.first + 1);
      case 2:
        return double(item.length) * double(item.size);
      default:
        return double(overlaps_.of(k).size());
      }
    };
    std::vector<std::pair<double, double>> keys;
    for (uint32_t k = 0; k < items.size(); ++k) {
      double full = *std::max_element(fullness.begin() + items[k].first,
                                      fullness.begin() + items[k].last + 1);
      keys.push_back(turn % 2 == 0 ? std::pair(full, measure(k))
                                   : std::pair(full * vary(measure(k)), 0.0));
    }
    std::vector<uint32_t> order(items.size()), rank(items.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater(), [&](uint32_t k) { return keys[k]; });
    for (uint32_t k = 0; k < items.size(); ++k)
      rank[order[k]] = k;
    return rank;
  }

  /// In [0, 1); always the same sequence.
  double nextRandom() {
    random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;
    return double(random_ >> 11) * 0x1p-53;
  }

  const Component &component_;
  const Overlaps &overlaps_;
  Search search_;
  uint64_t nodeLimit_;
  uint64_t granted_ = 0;
  std::vector<Bytes> live_;   ///< Section -> sum of its items.
  std::vector<double> bonus_; ///< Section -> by how much it counts as fuller than it is.
  uint64_t random_ = 0x9e3779b97f4a7c15;
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
  while (low < attempt.peak && !portfolio.isSpent()) {
    Bytes middle = low + (attempt.peak - 1 - low) / 2;
    if (decide(middle, options.nodeLimit / 8) != Outcome::Found)
      low = middle + 1;
  }
  return portfolio.nodes();
}

} // namespace strata::planner
