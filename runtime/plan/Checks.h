// The parts of verifyPlan(); private to runtime/plan.
#pragma once

#include <cstdint>
#include <string_view>

#include "codegen/kernels/KernelLibrary.h"
#include "runtime/base/CheckedMath.h"
#include "runtime/base/Status.h"
#include "runtime/plan/PlanAccess.h"
#include "runtime/plan/PlanVerifier.h"
#include "runtime/plan/Plan_generated.h"

namespace strata::checks {

// Limits on what a plan may ask for. They are far above any model and keep every product of a few
// of them inside 64 bits; positions and ids are I32 in the step block.
constexpr uint32_t maxStages = 256;
constexpr uint32_t maxRows = 1u << 20;
constexpr uint32_t maxSequences = 1u << 16;
constexpr uint32_t maxContext = 1u << 30;
constexpr uint32_t maxVocabulary = 1u << 30;
constexpr uint32_t maxFields = 256; // slots are compared with every field of a block
constexpr uint64_t maxObjectBytes = uint64_t(1) << 48; // an address space

template <class... Args> Status invalid(fmt::format_string<Args...> format, Args &&...args) {
  return makeError(StatusCode::InvalidData, format, std::forward<Args>(args)...);
}

/// 1 to 255 bytes without control characters, so that a message can print it.
Status checkName(std::string_view what, const flatbuffers::String *name);
/// Errors: Unimplemented (a target that this build does not know).
Result<KernelLibrary> parseTarget(std::string_view target);
/// [offset, offset + bytes) lies in [0, size), without overflow.
inline bool inside(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}
/// Bytes of one element of a field's type; 0 where the type is unknown.
uint32_t fieldTypeBytes(std::string_view type);
/// Bytes of `elements` values of a weight type or of int8; 0 where unknown or not whole blocks.
uint64_t typedBytes(std::string_view type, uint64_t elements);

Status checkBuckets(const fb::Plan &plan); ///< Plan-wide numbers, buckets and tails.
Status checkSegments(const fb::Plan &plan, SegmentRange range);
Status checkHandoffs(const fb::Plan &plan);
Status checkVocabulary(const fb::Plan &plan);
Status checkStageObjects(const fb::Plan &plan, const fb::Stage &stage);
Status checkTableAgreement(const fb::Plan &plan); ///< Tables that several stages share.
Status checkStateAgreement(const fb::Plan &plan); ///< Groups that several stages share.
/// On a GPU, the code's constants are the command's and the grid covers the bucket; on a CPU there
/// is neither. `rows`: the most that a launch gives the kernel.
Status checkLaunch(const fb::Stage &stage, const fb::Command &command, uint64_t rows);
/// What the kernel of `command` touches lies inside its slots. Needs the slots themselves to hold.
Status checkOperands(const fb::Plan &plan, const fb::Stage &stage, const fb::Bucket &bucket,
                     const fb::Command &command);
/// Needs everything above to hold.
Status checkForward(const fb::Plan &plan, uint32_t stage, const fb::Forward &forward);

} // namespace strata::checks
