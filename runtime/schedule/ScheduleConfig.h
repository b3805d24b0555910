// What the schedule needs to know of a plan, and nothing else: tests build it by hand.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/Status.h"
#include "runtime/plan/Plan_generated.h"

namespace strata {

struct ScheduleConfig {
  /// A shape that can be launched (fb::Bucket).
  struct Bucket {
    std::string name;
    uint32_t rows = 0;
    uint32_t sequences = 0;
    bool body = true;
    bool head = true; ///< Up to `rows` head rows.
  };

  /// State that is paged together (fb::StateGroup).
  struct Group {
    std::string name;
    uint32_t window = 0;              ///< Tokens visible, the newest included; 0: all of them.
    uint32_t blockTokens = 0;         ///< The whole context for state that is one slot a sequence.
    uint32_t blocksPerSequence = 0;   ///< Width of a block table: covers maxContext.
    uint32_t blocks = 0;              ///< In the pool.
    std::vector<uint32_t> blockOrder; ///< A permutation of the pool's blocks; empty: ascending.
  };

  std::vector<Bucket> buckets;
  /// tails[n - 1]: how a remainder of n prompt rows of a lone sequence is cut, as bucket indices in
  /// order, each full but the last. Remainders past the end take the largest bucket.
  std::vector<std::vector<uint32_t>> tails;
  std::vector<Group> groups;
  uint32_t vocabularySize = 0;
  uint32_t maxContext = 0;   ///< Tokens of one sequence, prompt and answer.
  uint32_t maxSequences = 0; ///< Admitted at once: the sequence slots of the device tables.
  uint32_t stages = 1; ///< That a launch passes through: launchesInFlight() of them may be out.
  std::vector<int32_t> endOfGeneration;

  /// Whether a Schedule over this can always make progress. Errors: InvalidArgument, naming the
  /// bucket, tail or group, the number found and the number needed.
  Status verify() const;

  /// Tokens whose blocks group `group` must hold while `rows` rows of a sequence of `tokens` tokens
  /// run, as a number of blocks wherever the rows lie.
  uint32_t blocksNeeded(const Group &group, uint32_t tokens, uint32_t rows) const;
};

/// The configuration that `plan` asks for. `blockCounts` has one entry a state group, in the order
/// of stateGroups(plan). `sequences` lowers the number admitted at once; 0: the plan's. Errors:
/// InvalidArgument (more sequences than the plan has slots for), and those of verify().
Result<ScheduleConfig> scheduleConfig(const fb::Plan &plan, std::span<const uint32_t> blockCounts,
                                      uint32_t sequences);

} // namespace strata
