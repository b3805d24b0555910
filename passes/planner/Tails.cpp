#include "passes/planner/Tails.h"

#include <algorithm>
#include <tuple>

namespace strata::planner {

// Dynamic programme over the rows still to run: a full bucket and the best rest, or one padded
// bucket. The valid rows cost the same however they are cut, so they are left out.
std::vector<Tail> tailTable(const std::vector<int64_t> &bucketRows, TailCost cost) {
  struct Best {
    int64_t cost = 0;
    int64_t launches = 0;
    int64_t padding = 0;
    size_t first = 0;
  };
  int64_t chunk = bucketRows.back();
  std::vector<Best> best(static_cast<size_t>(chunk));
  for (int64_t rows = 1; rows < chunk; ++rows) {
    Best &choice = best[static_cast<size_t>(rows)];
    bool found = false;
    for (size_t bucket = bucketRows.size(); bucket-- > 0;) {
      int64_t padding = std::max<int64_t>(0, bucketRows[bucket] - rows);
      const Best &after =
          best[static_cast<size_t>(std::max<int64_t>(0, rows - bucketRows[bucket]))];
      Best candidate{cost.launch + cost.paddedRow * padding + after.cost, 1 + after.launches,
                     padding + after.padding, bucket};
      if (!found || std::tie(candidate.cost, candidate.launches, candidate.padding) <
                        std::tie(choice.cost, choice.launches, choice.padding)) {
        choice = candidate;
        found = true;
      }
    }
  }
  std::vector<Tail> table;
  for (int64_t rows = 1; rows < chunk; ++rows) {
    Tail tail{rows, {}, 0};
    for (int64_t rest = rows; rest > 0;) {
      size_t bucket = best[static_cast<size_t>(rest)].first;
      tail.buckets.push_back(bucket);
      rest -= bucketRows[bucket];
      tail.padding = std::max<int64_t>(0, -rest);
    }
    std::stable_sort(tail.buckets.begin(), tail.buckets.end(), std::greater<>());
    table.push_back(std::move(tail));
  }
  return table;
}

} // namespace strata::planner
