// The device table of a stage: what a sequence keeps from step to step, by its slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/Status.h"
#include "runtime/device/Device.h"
#include "runtime/plan/Plan_generated.h"
#include "runtime/stage/Executor.h"

namespace strata {

/// Fields (S: max_sequences, C: max_context, B: maxLogitBiases, W: maskWords(vocabulary)):
///   i32 last_id [S]; history [S, C]
///   i32 bias_count [S], bias_id [S, B]; f32 bias_value [S, B]
///   i32 is_masked [S]; u32 mask [S, W]
/// A stage has those of them that its kernels use. Between starts, kernels alone write them.
class SequenceTable {
public:
  /// Errors: InvalidData (a field of another type, too short, or of an unknown name). Reads the
  /// plan only.
  static Result<SequenceTable> create(const fb::Plan &plan, const fb::BlockLayout &layout);

  /// What a start copies from beside its sequence's own memory, until the launch has ended.
  struct Staged {
    int32_t biasCount = 0;
    int32_t isMasked = 0;
    int32_t biasId[maxLogitBiases];
    float biasValue[maxLogitBiases];
  };
  static constexpr size_t copiesPerStart = 6;

  /// Appends the copies that give the slot to a new sequence.
  void start(const SequenceStart &sequence, std::byte *table, Staged &staged,
             std::vector<DeviceCopy> &copies) const;

  /// The last sampled id of each slot; empty where the stage keeps none.
  std::span<int32_t> lastIds(std::byte *table) const;

private:
  static constexpr uint64_t absent = UINT64_MAX;
  uint64_t lastId_ = absent, history_ = absent;
  uint64_t biasCount_ = absent, biasId_ = absent, biasValue_ = absent;
  uint64_t isMasked_ = absent, mask_ = absent;
  uint64_t sequences_ = 0, context_ = 0, maskWords_ = 0;
};

} // namespace strata
