#include "runtime/plan/PlanWriter.h"

#include <array>
#include <filesystem>

#include <xxhash.h>

#include "runtime/base/CheckedMath.h"
#include "runtime/base/MappedFile.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/PlanVerifier.h"

namespace strata {
namespace {

std::string nameOf(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  return contentName(std::to_array(canonical.digest));
}

// Streams one segment to `file` from `begin` on, hashing as it goes.
class FileSink final : public SegmentSink {
public:
  FileSink(OutputFile &file, uint64_t begin)
      : file_(file), begin_(begin), hash_(XXH3_createState()) {
    XXH3_128bits_reset(hash_);
  }
  ~FileSink() override { XXH3_freeState(hash_); }
  FileSink(const FileSink &) = delete;

  Status write(std::span<const std::byte> bytes) override {
    XXH3_128bits_update(hash_, bytes.data(), bytes.size());
    STRATA_RETURN_IF_ERROR(file_.writeAt(begin_ + bytes_, bytes));
    bytes_ += bytes.size();
    return {};
  }

  std::string name() const { return nameOf(XXH3_128bits_digest(hash_)); }

private:
  OutputFile &file_;
  uint64_t begin_;
  XXH3_state_t *hash_;
};

Status produceInto(FileSink &sink, const PlanWriter::Producer &produce) {
  STRATA_RETURN_IF_ERROR(produce(sink));
  if (sink.bytes() == 0)
    return makeError(StatusCode::InvalidArgument, "a weight segment has no bytes");
  return {};
}

/// Whether `path` holds the bytes that its name says.
bool isIntact(const std::string &path, const WrittenSegment &segment) {
  Result<std::shared_ptr<const MappedFile>> file = MappedFile::open(path);
  return file.isOk() && (*file)->bytes().size() == segment.bytes &&
         nameOf(XXH3_128bits((*file)->bytes().data(), segment.bytes)) == segment.name;
}

// The file is kept only where its content is not there yet.
Result<WrittenSegment> addToStore(const std::string &folder, const PlanWriter::Producer &produce) {
  STRATA_ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, OutputFile::createIn(folder));
  FileSink sink(*file, 0);
  STRATA_RETURN_IF_ERROR(produceInto(sink, produce));
  WrittenSegment written{sink.name(), sink.bytes(), 0};
  std::string path = folder + "/" + written.name;
  if (!isIntact(path, written))
    STRATA_RETURN_IF_ERROR(file->publish(path));
  return written;
}

} // namespace

std::string storeFolder(const std::string &planPath, const std::string &store) {
  // An absolute `store` replaces the folder.
  return (std::filesystem::path(folderOf(planPath)) / store).string();
}

Status SegmentSink::alignTo(uint64_t alignment) {
  static constexpr std::array<std::byte, 4096> zeros{};
  for (uint64_t left = alignUp(bytes_, alignment) - bytes_; left > 0;) {
    uint64_t chunk = std::min<uint64_t>(left, zeros.size());
    STRATA_RETURN_IF_ERROR(write({zeros.data(), chunk}));
    left -= chunk;
  }
  return {};
}

Result<std::unique_ptr<PlanWriter>>
PlanWriter::create(const std::string &path, fb::WeightsPlace place, const std::string &store) {
  if ((place == fb::WeightsPlace::Store) != !store.empty())
    return makeError(StatusCode::InvalidArgument, "a plan {} a weight store names {}",
                     store.empty() ? "with" : "without",
                     store.empty() ? "its folder" : "no folder");
  std::unique_ptr<PlanWriter> writer(new PlanWriter);
  writer->path_ = path;
  writer->place_ = place;
  writer->end_ = segmentAlignment;
  if (place == fb::WeightsPlace::Store) {
    writer->storeFolder_ = strata::storeFolder(path, store);
    std::error_code error;
    std::filesystem::create_directories(writer->storeFolder_, error);
    if (error)
      return makeError(StatusCode::Internal, "cannot create the weight store '{}': {}",
                       writer->storeFolder_, error.message());
  }
  STRATA_ASSIGN_OR_RETURN(writer->file_, OutputFile::create(path));
  return writer;
}

Result<WrittenSegment> PlanWriter::addSegment(const Producer &produce) {
  if (place_ == fb::WeightsPlace::None)
    return makeError(StatusCode::InvalidArgument, "a plan without weights takes no segments");
  if (place_ == fb::WeightsPlace::Store)
    return addToStore(storeFolder_, produce);
  uint64_t begin = alignUp(end_, segmentAlignment);
  FileSink sink(*file_, begin);
  STRATA_RETURN_IF_ERROR(produceInto(sink, produce));
  end_ = begin + sink.bytes();
  return WrittenSegment{sink.name(), sink.bytes(), begin};
}

Status PlanWriter::finish(std::span<const uint8_t> flatBuffer) {
  if (!file_)
    return makeError(StatusCode::Internal, "plan '{}' is already finished", path_);
  PlanHeader header;
  header.flatBufferStart = alignUp(end_, weightAlignment);
  header.flatBufferBytes = flatBuffer.size();
  header.fileBytes = header.flatBufferStart + header.flatBufferBytes;
  Result<const fb::Plan *> plan =
      verifyPlan(flatBuffer, {header.segmentStart, header.flatBufferStart});
  if (!plan.isOk())
    return std::move(plan).status().at("plan", path_);
  if ((*plan)->weights_place() != place_)
    return makeError(StatusCode::InvalidArgument, "plan '{}' says {} but was written as {}", path_,
                     fb::EnumNameWeightsPlace((*plan)->weights_place()),
                     fb::EnumNameWeightsPlace(place_));
  XXH128_canonical_t hash;
  XXH128_canonicalFromHash(&hash, XXH3_128bits(flatBuffer.data(), flatBuffer.size()));
  header.hash = std::to_array(hash.digest);
  STRATA_RETURN_IF_ERROR(file_->writeAt(header.flatBufferStart, std::as_bytes(flatBuffer)));
  STRATA_RETURN_IF_ERROR(file_->writeAt(0, std::as_bytes(std::span(&header, 1))));
  STRATA_RETURN_IF_ERROR(file_->publish(path_));
  file_.reset();
  return {};
}

} // namespace strata
