// Writes a plan file and its weight segments, atomically and in little memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/OutputFile.h"
#include "runtime/base/Status.h"
#include "runtime/plan/Plan_generated.h"

namespace strata {

/// Takes the bytes of one segment, in order.
class SegmentSink {
public:
  virtual ~SegmentSink() = default;
  virtual Status write(std::span<const std::byte> bytes) = 0;
  /// Writes zeros until the segment's size is a multiple of `alignment` (a power of two).
  Status alignTo(uint64_t alignment);
  uint64_t bytes() const { return bytes_; } ///< Written so far.

protected:
  uint64_t bytes_ = 0;
};

/// What a segment's entry in the FlatBuffer says (fb::Segment).
struct WrittenSegment {
  std::string name; ///< Hexadecimal XXH3-128 of the content.
  uint64_t bytes = 0;
  uint64_t fileOffset = 0; ///< 0 where the segment went to a store.
};

/// Segments first, then the FlatBuffer that names them:
///
///   STRATA_ASSIGN_OR_RETURN(auto writer, PlanWriter::create(path, fb::WeightsPlace::Inside));
///   for (each segment)
///     STRATA_ASSIGN_OR_RETURN(WrittenSegment s, writer->addSegment([&](SegmentSink &sink) { ...
///     }));
///   ... build the FlatBuffer, FinishPlanBuffer(builder, plan) ...
///   STRATA_RETURN_IF_ERROR(writer->finish({builder.GetBufferPointer(), builder.GetSize()}));
///
/// The plan appears under its name only when finish() succeeds (OutputFile). Used from one thread.
class PlanWriter {
public:
  using Producer = std::function<Status(SegmentSink &)>;

  /// `store` is needed for WeightsPlace::Store: the folder as fb::Plan.store names it, absolute or
  /// relative to the plan file's folder; created where absent.
  /// Errors: InvalidArgument (store missing or not wanted; those of checkOutputPath()), NotFound
  /// (no such folder), Internal (I/O).
  static Result<std::unique_ptr<PlanWriter>> create(const std::string &path, fb::WeightsPlace place,
                                                    const std::string &store = "");

  /// Streams one segment, at least one byte. In a store, content that is there already, and
  /// undamaged, is left as it is. Plans with WeightsPlace::None write no segments: calling this is
  /// InvalidArgument.
  Result<WrittenSegment> addSegment(const Producer &produce);

  /// Verifies the finished FlatBuffer as the loader will, writes it and the header, syncs, and
  /// moves the file to its name. Errors: InvalidData (the plan would be refused at load), Internal
  /// (I/O).
  Status finish(std::span<const uint8_t> flatBuffer);

private:
  PlanWriter() = default;

  std::string path_;
  std::string storeFolder_;
  std::unique_ptr<OutputFile> file_;
  fb::WeightsPlace place_ = fb::WeightsPlace::Inside;
  uint64_t end_ = 0; ///< Bytes of the file that are taken.
};

/// A folder that `store` names, as seen from the plan at `planPath`.
std::string storeFolder(const std::string &planPath, const std::string &store);

} // namespace strata
