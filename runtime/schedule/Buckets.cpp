#include "runtime/schedule/Buckets.h"

#include <algorithm>
#include <cassert>
#include <tuple>

namespace strata {

Buckets::Buckets(const ScheduleConfig &config) : config_(&config) {
  for (const ScheduleConfig::Bucket &bucket : config.buckets) {
    if (bucket.head)
      headRows_ = std::max(headRows_, bucket.rows);
    if (!bucket.body) {
      headAloneRows_ = std::max(headAloneRows_, bucket.rows);
      continue;
    }
    uint32_t sequences = std::min(bucket.sequences, config.maxSequences);
    if (rowsFor_.size() < sequences)
      rowsFor_.resize(sequences, 0);
    for (uint32_t i = 0; i < sequences; ++i)
      rowsFor_[i] = std::max(rowsFor_[i], bucket.rows);
  }
}

uint32_t Buckets::rowsFor(uint32_t sequences) const {
  return sequences - 1 < rowsFor_.size() ? rowsFor_[sequences - 1] : 0;
}

uint32_t Buckets::body(uint32_t rows, uint32_t sequences, bool wantsHead) const {
  std::optional<uint32_t> best;
  auto rank = [&](uint32_t index) {
    const ScheduleConfig::Bucket &bucket = config_->buckets[index];
    return std::tuple(bucket.rows, bucket.sequences, bucket.head != wantsHead);
  };
  for (uint32_t i = 0; i < config_->buckets.size(); ++i) {
    const ScheduleConfig::Bucket &bucket = config_->buckets[i];
    if (bucket.body && bucket.rows >= rows && bucket.sequences >= sequences &&
        (!best || rank(i) < rank(*best)))
      best = i;
  }
  assert(best && "the batch was built within rowsFor()");
  return *best;
}

std::optional<uint32_t> Buckets::headAlone(uint32_t rows, uint32_t sequences) const {
  std::optional<uint32_t> best;
  auto rank = [&](uint32_t index) {
    return std::pair(config_->buckets[index].rows, config_->buckets[index].sequences);
  };
  for (uint32_t i = 0; i < config_->buckets.size(); ++i) {
    const ScheduleConfig::Bucket &bucket = config_->buckets[i];
    if (!bucket.body && bucket.rows >= rows && bucket.sequences >= sequences &&
        (!best || rank(i) < rank(*best)))
      best = i;
  }
  return best;
}

} // namespace strata
