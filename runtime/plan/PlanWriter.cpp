#include "runtime/plan/PlanWriter.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "runtime/base/CheckedMath.h"
#include "runtime/base/OutputPath.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/plan/PlanVerifier.h"

namespace strata {
namespace {

Status ioError(std::string_view what, const std::string &path) {
  return makeError(StatusCode::Internal, "cannot {} '{}': {}", what, path, std::strerror(errno));
}

Status writeAt(int descriptor, const std::string &path, uint64_t offset, const void *data,
               size_t bytes) {
  const char *at = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t written = ::pwrite(descriptor, at, bytes, off_t(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return ioError("write", path);
    at += written;
    offset += uint64_t(written);
    bytes -= size_t(written);
  }
  return {};
}

// A new file beside `path`, so that rename() stays within the file system.
Result<int> createTemporary(const std::string &path, std::string &temporary) {
  for (uint32_t i = 0; i < 1000; ++i) {
    temporary = fmt::format("{}.part-{}-{}", path, ::getpid(), i);
    int descriptor = ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0)
      return descriptor;
    if (errno != EEXIST)
      break;
  }
  Status status = makeError(errno == ENOENT ? StatusCode::NotFound : StatusCode::Internal,
                            "cannot create '{}': {}", temporary, std::strerror(errno));
  temporary.clear();
  return status;
}

std::string folderOf(const std::string &path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

// Moves a finished file to its name; the folder is synced so that the name survives a power cut.
Status publish(int descriptor, const std::string &temporary, const std::string &path) {
  if (::fsync(descriptor) != 0)
    return ioError("sync", temporary);
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return ioError("rename to", path);
  int folder = ::open(folderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    (void)::fsync(folder); // not every file system can; the rename itself has happened
    ::close(folder);
  }
  return {};
}

// Streams one segment to `descriptor` from `begin` on, hashing as it goes.
class FileSink final : public SegmentSink {
public:
  FileSink(int descriptor, std::string path, uint64_t begin)
      : descriptor_(descriptor), path_(std::move(path)), begin_(begin), hash_(XXH3_createState()) {
    XXH3_128bits_reset(hash_);
  }
  ~FileSink() override { XXH3_freeState(hash_); }
  FileSink(const FileSink &) = delete;

  Status write(std::span<const std::byte> bytes) override {
    XXH3_128bits_update(hash_, bytes.data(), bytes.size());
    STRATA_RETURN_IF_ERROR(
        writeAt(descriptor_, path_, begin_ + bytes_, bytes.data(), bytes.size()));
    bytes_ += bytes.size();
    return {};
  }

  std::string name() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(hash_));
    return contentName(std::to_array(canonical.digest));
  }

private:
  int descriptor_;
  std::string path_;
  uint64_t begin_;
  XXH3_state_t *hash_;
};

Status produceInto(FileSink &sink, const PlanWriter::Producer &produce) {
  STRATA_RETURN_IF_ERROR(produce(sink));
  if (sink.bytes() == 0)
    return makeError(StatusCode::InvalidArgument, "a weight segment has no bytes");
  return {};
}

// The file is written under a temporary name and kept only where its content is not there yet.
Result<WrittenSegment> addToStore(const std::string &folder, const PlanWriter::Producer &produce) {
  std::string temporary;
  STRATA_ASSIGN_OR_RETURN(int descriptor, createTemporary(folder + "/segment", temporary));
  FileSink sink(descriptor, temporary, 0);
  Status status = produceInto(sink, produce);
  WrittenSegment written{sink.name(), sink.bytes(), 0};
  std::string path = folder + "/" + written.name;
  struct stat info;
  bool isThere = ::stat(path.c_str(), &info) == 0 && uint64_t(info.st_size) == written.bytes;
  if (status.isOk() && !isThere)
    status = publish(descriptor, temporary, path);
  ::close(descriptor);
  if (!status.isOk() || isThere)
    ::unlink(temporary.c_str());
  if (!status.isOk())
    return status;
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
  STRATA_RETURN_IF_ERROR(checkOutputPath(path));
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
  STRATA_ASSIGN_OR_RETURN(writer->descriptor_, createTemporary(path, writer->temporary_));
  return writer;
}

PlanWriter::~PlanWriter() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
  if (!temporary_.empty())
    ::unlink(temporary_.c_str());
}

Result<WrittenSegment> PlanWriter::addSegment(const Producer &produce) {
  if (place_ == fb::WeightsPlace::None)
    return makeError(StatusCode::InvalidArgument, "a plan without weights takes no segments");
  if (place_ == fb::WeightsPlace::Store)
    return addToStore(storeFolder_, produce);
  uint64_t begin = alignUp(end_, segmentAlignment);
  FileSink sink(descriptor_, temporary_, begin);
  STRATA_RETURN_IF_ERROR(produceInto(sink, produce));
  end_ = begin + sink.bytes();
  return WrittenSegment{sink.name(), sink.bytes(), begin};
}

Status PlanWriter::finish(std::span<const uint8_t> flatBuffer) {
  if (temporary_.empty())
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
  STRATA_RETURN_IF_ERROR(writeAt(descriptor_, temporary_, header.flatBufferStart, flatBuffer.data(),
                                 flatBuffer.size()));
  STRATA_RETURN_IF_ERROR(writeAt(descriptor_, temporary_, 0, &header, sizeof header));
  STRATA_RETURN_IF_ERROR(publish(descriptor_, temporary_, path_));
  temporary_.clear();
  return {};
}

} // namespace strata
