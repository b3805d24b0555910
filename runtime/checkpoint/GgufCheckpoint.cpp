#include "runtime/checkpoint/GgufCheckpoint.h"

#include "runtime/checkpoint/GgufFile.h"
#include "runtime/checkpoint/GgufVocabulary.h"
#include "runtime/checkpoint/Text.h"

namespace strata {
namespace {

/// A configuration has lists of one element per layer; this bounds what a hostile file can make of
/// them, since a JSON value takes 16 times the bytes of a `u8`.
constexpr uint64_t maxConfigElements = uint64_t{1} << 20;

constexpr uint64_t maxSplitParts = 99999; // five digits in the file's name

class GgufCheckpoint final : public Checkpoint {
public:
  explicit GgufCheckpoint(std::string path) : Checkpoint(CheckpointFormat::Gguf, std::move(path)) {}

  Status load();

  Result<std::optional<Vocabulary>> vocabulary() const override {
    Result<std::optional<Vocabulary>> vocabulary = readGgufVocabulary(files_.front());
    if (!vocabulary.isOk())
      return std::move(vocabulary).status().at("file", path_);
    return vocabulary;
  }

private:
  Status readConfig();
  Status collectTensors();
  Status openOtherParts(uint64_t partCount);

  std::vector<GgufFile> files_; ///< In the order of the parts.
};

Result<nlohmann::ordered_json> toJson(const GgufPair &pair) {
  const GgufValue &value = pair.value;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  if (value.type == GgufType::String) {
    for (std::string_view text : value.strings()) {
      if (!isUtf8(text))
        return makeError(StatusCode::InvalidData, "key '{}' holds a string that is not UTF-8: '{}'",
                         printable(pair.key), printable(text));
      list.push_back(text);
    }
  } else {
    for (uint64_t i = 0; i < value.count; ++i)
      list.push_back(value.element(i));
  }
  return value.isArray ? list : list.front();
}

Status GgufCheckpoint::readConfig() {
  config_ = nlohmann::ordered_json::object();
  uint64_t elements = 0;
  for (const GgufPair &pair : files_.front().pairs()) {
    if (pair.key.starts_with("tokenizer.") || pair.key.starts_with("split."))
      continue;
    elements += pair.value.count;
    if (elements > maxConfigElements)
      return makeError(StatusCode::InvalidData,
                       "the configuration has {} or more values with key '{}'; at most {} are read",
                       elements, printable(pair.key), maxConfigElements);
    STRATA_ASSIGN_OR_RETURN(nlohmann::ordered_json json, toJson(pair));
    // The file has no key twice, so the search that operator[] makes is not needed.
    config_.get_ref<nlohmann::ordered_json::object_t &>().emplace_back(std::string(pair.key),
                                                                       std::move(json));
  }
  return Status::ok();
}

std::string partName(uint64_t part, uint64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", part + 1, count);
}

Status GgufCheckpoint::openOtherParts(uint64_t partCount) {
  std::string suffix = partName(0, partCount);
  if (!path_.ends_with(suffix))
    return makeError(StatusCode::InvalidData,
                     "the file is part 1 of {}, whose name must end with '{}' so that the others "
                     "can be found beside it",
                     partCount, suffix);
  std::string base = path_.substr(0, path_.size() - suffix.size());
  for (uint64_t part = 1; part < partCount; ++part) {
    std::string partPath = base + partName(part, partCount);
    STRATA_ASSIGN_OR_RETURN(GgufFile file, GgufFile::open(partPath, GgufFile::Parts::All));
    STRATA_ASSIGN_OR_RETURN(std::optional<uint64_t> number,
                            file.unsignedInteger("split.no", maxSplitParts));
    STRATA_ASSIGN_OR_RETURN(std::optional<uint64_t> count,
                            file.unsignedInteger("split.count", maxSplitParts));
    if (number != part || count != partCount)
      return makeError(StatusCode::InvalidData,
                       "'{}' says that it is part {} of {}, but its name and the first part say "
                       "{} of {}",
                       partPath, number ? *number + 1 : 0, count.value_or(0), part + 1, partCount);
    files_.push_back(std::move(file));
  }
  return Status::ok();
}

Status GgufCheckpoint::load() {
  STRATA_ASSIGN_OR_RETURN(GgufFile first, GgufFile::open(path_, GgufFile::Parts::All));
  files_.push_back(std::move(first));
  Status status = readConfig();
  if (status.isOk())
    status = collectTensors();
  return status.isOk() ? status : std::move(status).at("checkpoint", path_);
}

Status GgufCheckpoint::collectTensors() {
  STRATA_ASSIGN_OR_RETURN(std::optional<uint64_t> number,
                          files_.front().unsignedInteger("split.no", maxSplitParts));
  STRATA_ASSIGN_OR_RETURN(std::optional<uint64_t> count,
                          files_.front().unsignedInteger("split.count", maxSplitParts));
  if (number.value_or(0) != 0)
    return makeError(StatusCode::InvalidData,
                     "the file is part {} of {}; name the first part, '...{}'", *number + 1,
                     count.value_or(0), partName(0, count.value_or(0)));
  if (count.value_or(1) > 1)
    STRATA_RETURN_IF_ERROR(openOtherParts(*count));

  for (const GgufFile &file : files_)
    for (const GgufTensor &tensor : file.tensors())
      tensors_.push_back({std::string(tensor.name), tensor.type, tensor.shape, tensor.bytes});
  STRATA_ASSIGN_OR_RETURN(std::optional<uint64_t> stated,
                          files_.front().unsignedInteger("split.tensors.count", UINT64_MAX));
  if (stated.value_or(tensors_.size()) != tensors_.size())
    return makeError(StatusCode::InvalidData,
                     "key 'split.tensors.count' is {} but the {} parts hold {} tensors", *stated,
                     files_.size(), tensors_.size());
  return indexTensors();
}

} // namespace

Result<std::unique_ptr<Checkpoint>> openGgufCheckpoint(const std::string &path) {
  auto checkpoint = std::make_unique<GgufCheckpoint>(path);
  Status status = checkpoint->load();
  if (!status.isOk())
    return status;
  return std::unique_ptr<Checkpoint>(std::move(checkpoint));
}

} // namespace strata
