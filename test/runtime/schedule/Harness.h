// Configurations to schedule under, and a driver that checks every invariant at every step.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/schedule/Schedule.h"
#include "test/runtime/schedule/FakeExecutor.h"

namespace strata::test {

/// Buckets by their names: "r8s4" body and head, "b128s1" body alone, "h4" head alone.
std::vector<ScheduleConfig::Bucket> buckets(const std::vector<std::string> &names);

/// Bucket sets that differ in every way that matters to the schedule.
struct BucketSet {
  const char *name;
  std::vector<std::string> buckets;
};
std::vector<BucketSet> bucketSets();

/// One paged group of blocks of 4 tokens, `sequences` sequences of `context` tokens, all backed; a
/// vocabulary of 97 with end tokens 5 and 11; no tails.
ScheduleConfig makeConfig(const std::vector<std::string> &bucketNames, uint32_t sequences,
                          uint32_t context);

/// Adds a window group of `window` tokens, in blocks of 3 tokens, with just the blocks that the
/// configuration's sequences need.
void addWindowGroup(ScheduleConfig &config, uint32_t window);

/// Cuts every remainder below the chunk into the largest full buckets of one sequence, so 13 rows
/// become 8 + 4 + 1 where such buckets exist.
void addBinaryTails(ScheduleConfig &config);

/// Permutes the blocks of every group.
void shuffleBlocks(ScheduleConfig &config, uint32_t seed);

/// `length` ids that depend on `seed`.
std::vector<int32_t> makePrompt(uint32_t length, uint32_t seed, uint32_t vocabulary = 97);

/// A launch as it was seen, for asserting on.
struct Launch {
  std::string bucket;
  uint32_t rows;
  uint32_t sequences;
  uint32_t headRows;
  bool operator==(const Launch &) const = default;
};

class Harness {
public:
  explicit Harness(const ScheduleConfig &config);

  RequestId submit(Request request); ///< Fails the test where it is refused.

  /// Runs one launch, takes its events and checks the invariants; false where there was none.
  bool launch();
  void run(); ///< Until nothing is left, then checks that every slot and block came back.

  void takeEvents();
  void checkInvariants() const; ///< No block is held twice, none leaks.
  void checkIdle() const;       ///< Every block and slot is free.

  ScheduleConfig config;
  FakeExecutor executor;
  std::unique_ptr<Schedule> schedule;
  Step step;
  StepResult result;
  std::vector<Launch> launches;
  std::map<RequestId, Generation> outcomes;
  std::vector<RequestId> firstTokens; ///< In the order in which requests gave their first event.
};

} // namespace strata::test
