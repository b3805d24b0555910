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

/// What running a tail costs, in rows' worth of work.
struct TailCost {
  int64_t launch;    ///< Of each launch beside its rows: all weights are read once.
  int64_t paddedRow; ///< Of a row that stays empty: 0 where only valid rows are computed.
};

/// For every remainder 1 .. max(bucketRows) - 1, the multiset of buckets of least cost, larger ones
/// first. Ties go to fewer launches, then to less padding, then to the larger first bucket.
/// `bucketRows` is rising and not empty.
std::vector<Tail> tailTable(const std::vector<int64_t> &bucketRows, TailCost cost);

} // namespace strata::planner
