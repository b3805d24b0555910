#include "runtime/plan/PlanFile.h"

#include <algorithm>
#include <cstring>
#include <map>

#include <xxhash.h>

#include "runtime/plan/PlanAccess.h"
#include "runtime/plan/PlanVerifier.h"
#include "runtime/plan/PlanWriter.h"
#include "runtime/plan/VocabularyCodec.h"

namespace strata {
namespace {

std::array<uint8_t, 16> canonicalHash(std::span<const std::byte> bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  return std::to_array(canonical.digest);
}

Result<PlanHeader> readHeader(std::span<const std::byte> file) {
  PlanHeader header;
  if (file.size() < sizeof header)
    return makeError(
        StatusCode::InvalidData,
        "the file has {} bytes but a plan's header takes {}; it is no plan or truncated",
        file.size(), sizeof header);
  std::memcpy(&header, file.data(), sizeof header);
  if (header.magic != planMagic)
    return makeError(StatusCode::InvalidData,
                     "the file does not begin as a plan does; write one with strata-compile");
  if (header.version != planFormatVersion)
    return makeError(StatusCode::Unimplemented,
                     "the plan has format version {} but this build reads {}; compile it again",
                     header.version, planFormatVersion);
  if (header.headerBytes != sizeof header)
    return makeError(StatusCode::InvalidData, "the plan's header says that it has {} bytes, not {}",
                     header.headerBytes, sizeof header);
  if (header.fileBytes != file.size())
    return makeError(
        StatusCode::InvalidData,
        "the plan was written with {} bytes but the file has {}; the copy is incomplete",
        header.fileBytes, file.size());
  if (header.segmentStart != segmentAlignment || header.flatBufferStart < header.segmentStart ||
      header.flatBufferStart % weightAlignment != 0 || header.flatBufferStart > header.fileBytes ||
      header.flatBufferBytes != header.fileBytes - header.flatBufferStart)
    return makeError(
        StatusCode::InvalidData,
        "the plan's header places segments at {} and a FlatBuffer of {} bytes at {} in a "
        "file of {}",
        header.segmentStart, header.flatBufferBytes, header.flatBufferStart, header.fileBytes);
  return header;
}

Status checkHash(const PlanHeader &header, std::span<const std::byte> flatBuffer) {
  if (canonicalHash(flatBuffer) != header.hash)
    return makeError(
        StatusCode::InvalidData,
        "the plan's FlatBuffer of {} bytes does not have the hash that its header names; "
        "the file is damaged",
        flatBuffer.size());
  return {};
}

} // namespace

std::string contentName(const std::array<uint8_t, 16> &hash) {
  std::string name;
  for (uint8_t byte : hash)
    name += fmt::format("{:02x}", byte);
  return name;
}

std::string contentName(std::span<const std::byte> bytes) {
  return contentName(canonicalHash(bytes));
}

std::vector<const fb::StateGroup *> stateGroups(const fb::Plan &plan) {
  std::vector<const fb::StateGroup *> groups;
  for (uint32_t s = 0; s < count(plan.stages()); ++s) {
    const auto *states = plan.stages()->Get(s)->states();
    for (uint32_t i = 0; i < count(states); ++i) {
      std::string_view name = text(states->Get(i)->name());
      if (std::none_of(groups.begin(), groups.end(),
                       [&](const fb::StateGroup *group) { return text(group->name()) == name; }))
        groups.push_back(states->Get(i));
    }
  }
  return groups;
}

Result<std::shared_ptr<const PlanFile>> PlanFile::open(const std::string &path) {
  std::shared_ptr<PlanFile> plan(new PlanFile);
  STRATA_ASSIGN_OR_RETURN(plan->file_, MappedFile::open(path));
  std::span<const std::byte> bytes = plan->file_->bytes();

  auto verify = [&]() -> Status {
    STRATA_ASSIGN_OR_RETURN(PlanHeader header, readHeader(bytes));
    std::span<const std::byte> flatBuffer = bytes.subspan(header.flatBufferStart);
    STRATA_RETURN_IF_ERROR(checkHash(header, flatBuffer));
    STRATA_ASSIGN_OR_RETURN(
        plan->plan_,
        verifyPlan({reinterpret_cast<const uint8_t *>(flatBuffer.data()), flatBuffer.size()},
                   {header.segmentStart, header.flatBufferStart}));
    return plan->mapSegments();
  };
  if (Status status = verify(); !status.isOk())
    return std::move(status).at("plan", path);
  return std::shared_ptr<const PlanFile>(std::move(plan));
}

Status PlanFile::mapSegments() {
  uint32_t segments = count(plan_->segments());
  segments_.resize(segments);
  for (uint32_t i = 0; i < segments; ++i) {
    const fb::Segment &segment = *plan_->segments()->Get(i);
    if (plan_->weights_place() == fb::WeightsPlace::Inside) {
      segments_[i] = file_->bytes().subspan(segment.file_offset(), segment.bytes());
    } else if (plan_->weights_place() == fb::WeightsPlace::Store) {
      std::string folder = storeFolder(path(), std::string(text(plan_->store())));
      STRATA_ASSIGN_OR_RETURN(auto file,
                              MappedFile::open(folder + "/" + std::string(text(segment.name()))));
      if (file->bytes().size() != segment.bytes())
        return makeError(
            StatusCode::InvalidData,
            "segment '{}' ('{}') has {} bytes but the plan needs {}; the store's copy is "
            "incomplete",
            text(segment.label()), file->path(), file->bytes().size(), segment.bytes());
      segments_[i] = file->bytes();
      storeFiles_.push_back(std::move(file));
    }
  }
  return {};
}

Status PlanFile::verifySegments() const {
  for (uint32_t i = 0; i < segments_.size(); ++i) {
    const fb::Segment &segment = *plan_->segments()->Get(i);
    if (segments_[i].empty())
      continue;
    std::string found = contentName(segments_[i]);
    if (found != text(segment.name()))
      return makeError(
                 StatusCode::InvalidData,
                 "segment '{}' of {} bytes has the hash {} but the plan names {}; the weights "
                 "are damaged",
                 text(segment.label()), segment.bytes(), found, text(segment.name()))
          .at("plan", path());
  }
  return {};
}

std::optional<Vocabulary> PlanFile::vocabulary() const {
  if (!plan_->vocabulary())
    return std::nullopt;
  return decodeVocabulary(*plan_->vocabulary());
}

} // namespace strata
