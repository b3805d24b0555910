// The plan as a file: a header, page-aligned weight segments and one FlatBuffer (Plan.fbs).
//
//   byte 0            header, 64 bytes, then zeros up to the first page
//   segment start     segments, each at a multiple of 4096 (only where the plan holds its weights)
//   FlatBuffer start  the FlatBuffer, at a multiple of 64, up to the end of the file
//
// The FlatBuffer comes last because it names the segments by the hash of their content, which is
// known once they are written: a writer (PlanWriter.h) streams each weight once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/MappedFile.h"
#include "runtime/base/Status.h"
#include "runtime/plan/Plan_generated.h"
#include "runtime/tokenizer/Vocabulary.h"

namespace strata {

constexpr uint32_t planFormatVersion = 3;
constexpr uint64_t segmentAlignment =
    4096;                                ///< Bytes; a page, so that a segment can be mapped alone.
constexpr uint64_t weightAlignment = 64; ///< Bytes, of a weight inside its segment.
constexpr std::array<char, 8> planMagic = {'S', 'T', 'R', 'A', 'T', 'A', '\x1a', '\n'};

/// The first bytes of the file, little-endian as they lie.
struct PlanHeader {
  std::array<char, 8> magic = planMagic;
  uint32_t version = planFormatVersion;
  uint32_t headerBytes = 64;
  uint64_t flatBufferStart = 0;
  uint64_t flatBufferBytes = 0;
  uint64_t segmentStart = segmentAlignment;
  uint64_t fileBytes = 0;
  std::array<uint8_t, 16> hash{}; ///< XXH3-128 of the FlatBuffer, canonical (big-endian) form.
};
static_assert(sizeof(PlanHeader) == 64);

/// A plan that passed every check, mapped. Immutable; safe to share between threads. Spans and
/// FlatBuffer pointers live as long as the PlanFile.
class PlanFile {
public:
  /// Maps `path` and verifies, in this order, header, FlatBuffer (structure and hash) and meaning
  /// (PlanVerifier.h), then maps the segments of a store. Nothing is allocated in proportion to a
  /// number in the file before that number is checked. Weight bytes are not read
  /// (verifySegments()). Errors: NotFound (plan or store segment absent), InvalidData (names plan,
  /// stage, forward, command and numbers), Unimplemented (another format version, an unknown
  /// target).
  static Result<std::shared_ptr<const PlanFile>> open(const std::string &path);

  const std::string &path() const { return file_->path(); }
  const fb::Plan &plan() const { return *plan_; }

  /// Content of segment `index` of the plan; empty where the plan holds no weights.
  std::span<const std::byte> segment(uint32_t index) const { return segments_[index]; }

  /// Reads every segment and compares it with the hash that names it. Errors: InvalidData.
  Status verifySegments() const;

  /// Absent where the plan was compiled without a tokenizer.
  std::optional<Vocabulary> vocabulary() const;

private:
  PlanFile() = default;
  Status mapSegments();

  std::shared_ptr<const MappedFile> file_;
  const fb::Plan *plan_ = nullptr;
  std::vector<std::shared_ptr<const MappedFile>> storeFiles_;
  std::vector<std::span<const std::byte>> segments_;
};

/// The state groups of all stages, each name once, in order of first appearance: the numbering of
/// Step::blockTables and Executor::blockCount. Stages that share a group agree on everything but
/// its components and block_bytes.
std::vector<const fb::StateGroup *> stateGroups(const fb::Plan &plan);

/// 32 hexadecimal digits of the XXH3-128 of `bytes`: how segments are named.
std::string contentName(std::span<const std::byte> bytes);
/// The same from a hash in canonical form.
std::string contentName(const std::array<uint8_t, 16> &hash);

} // namespace strata
