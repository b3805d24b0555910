// How a prompt remainder is cut into buckets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace strata::planner {

struct Tail {
  int64_t rows;                ///< The remainder.
  std::vector<size_t> buckets; ///< Indices into the bucket list, in order; all full but the last.
  int64_t padding;             ///< Rows of the last bucket that stay empty.
};

/// For every remainder 1 .. max(bucketRows) - 1, the multiset of buckets of least cost, larger ones
/// first; the cost of a bucket is its rows plus `launchRows`. Ties go to fewer launches, then to
/// the larger first bucket. `bucketRows` is rising and not empty.
std::vector<Tail> tailTable(const std::vector<int64_t> &bucketRows, int64_t launchRows);

} // namespace strata::planner
