// Which bucket runs a batch: the smallest that holds it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/schedule/ScheduleConfig.h"

namespace strata {

/// Answers by table or by a scan of the few dozen buckets; immutable, allocates nothing.
class Buckets {
public:
  /// `config` is verified and outlives this.
  explicit Buckets(const ScheduleConfig &config);

  /// Rows of the largest body bucket that takes `sequences` sequences; 0 where none does. Falls as
  /// `sequences` grows.
  uint32_t rowsFor(uint32_t sequences) const;

  /// The body bucket with the fewest rows, then the fewest sequences, that holds the batch; among
  /// equals the one that has a head exactly where one is wanted. rowsFor(sequences) >= rows.
  uint32_t body(uint32_t rows, uint32_t sequences, bool wantsHead) const;

  /// The smallest bucket of the head alone for `rows` head rows of `sequences` sequences.
  std::optional<uint32_t> headAlone(uint32_t rows, uint32_t sequences) const;

  uint32_t maxRows() const { return rowsFor(1); } ///< Of a body: the chunk.
  uint32_t maxHeadAloneRows() const {
    return headAloneRows_;
  } ///< 0 where no bucket is a head alone.
  uint32_t maxHeadRows() const { return headRows_; } ///< Of any bucket with a head.
  uint32_t maxBatch() const { return static_cast<uint32_t>(rowsFor_.size()); } ///< Sequences.

private:
  const ScheduleConfig *config_;
  std::vector<uint32_t> rowsFor_; ///< [sequences - 1]
  uint32_t headRows_ = 0;
  uint32_t headAloneRows_ = 0;
};

} // namespace strata
