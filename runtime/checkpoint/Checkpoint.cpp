#include "runtime/checkpoint/Checkpoint.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "runtime/base/MappedFile.h"
#include "runtime/checkpoint/EndOfGeneration.h"
#include "runtime/checkpoint/GgufCheckpoint.h"
#include "runtime/checkpoint/GgufFile.h"
#include "runtime/checkpoint/GgufVocabulary.h"
#include "runtime/checkpoint/HuggingFaceCheckpoint.h"
#include "runtime/checkpoint/Json.h"
#include "runtime/checkpoint/LfsPointer.h"
#include "runtime/checkpoint/Text.h"
#include "runtime/checkpoint/TokenizerJson.h"

namespace strata {
namespace {

bool isFolder(const std::string &path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

bool isJson(const std::string &path) { return std::filesystem::path(path).extension() == ".json"; }

Result<bool> isGguf(const std::string &path) {
  STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  STRATA_RETURN_IF_ERROR(refuseLfsPointer(*file));
  return file->bytes().size() >= 4 && std::memcmp(file->bytes().data(), "GGUF", 4) == 0;
}

/// An optional JSON file beside another; null where it is absent.
Result<nlohmann::ordered_json> readSibling(const std::filesystem::path &folder, const char *name) {
  std::error_code ignored;
  if (!std::filesystem::exists(folder / name, ignored))
    return nlohmann::ordered_json();
  return readJsonFile(folder / name);
}

Result<std::optional<Vocabulary>> readFolderOf(const std::filesystem::path &folder) {
  STRATA_ASSIGN_OR_RETURN(nlohmann::ordered_json config, readSibling(folder, "config.json"));
  STRATA_ASSIGN_OR_RETURN(nlohmann::ordered_json generationConfig,
                          readSibling(folder, "generation_config.json"));
  return readFolderVocabulary(folder, config, generationConfig);
}

Result<std::optional<Vocabulary>> readTokenizerFileWithSiblings(const std::string &path) {
  STRATA_RETURN_IF_ERROR(MappedFile::open(path).status()); // names the file that is missing
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return readFolderOf(folder.empty() ? std::filesystem::path(".") : folder);
}

Result<std::optional<Vocabulary>> readTokenizerFileAlone(const std::string &path) {
  TokenizerDocuments documents;
  STRATA_ASSIGN_OR_RETURN(documents.tokenizer, readJsonFile(path));
  Result<Vocabulary> vocabulary = readTokenizerJson(documents);
  if (!vocabulary.isOk())
    return std::move(vocabulary).status().at("file", path);
  return std::optional<Vocabulary>(*std::move(vocabulary));
}

Result<std::optional<Vocabulary>> readGgufFile(const std::string &path) {
  STRATA_ASSIGN_OR_RETURN(bool gguf, isGguf(path));
  if (!gguf)
    return makeError(StatusCode::InvalidData,
                     "'{}' is neither a GGUF file (it does not begin with the letters GGUF) nor a "
                     "tokenizer.json",
                     path);
  STRATA_ASSIGN_OR_RETURN(GgufFile file, GgufFile::open(path, GgufFile::Parts::Metadata));
  Result<std::optional<Vocabulary>> vocabulary = readGgufVocabulary(file);
  if (!vocabulary.isOk())
    return std::move(vocabulary).status().at("file", path);
  return vocabulary;
}

} // namespace

Result<std::unique_ptr<Checkpoint>> Checkpoint::open(const std::string &path) {
  if (isFolder(path))
    return openHuggingFaceCheckpoint(path);
  STRATA_ASSIGN_OR_RETURN(bool gguf, isGguf(path));
  if (gguf)
    return openGgufCheckpoint(path);
  if (isJson(path))
    return openConfigCheckpoint(path);
  if (std::filesystem::path(path).extension() == ".safetensors")
    return makeError(StatusCode::InvalidArgument,
                     "'{}' holds weights alone; name the folder that holds it and its config.json",
                     path);
  return makeError(StatusCode::InvalidData,
                   "'{}' is neither a GGUF file (it does not begin with the letters GGUF) nor a "
                   "config.json; name one of these or a Hugging Face folder",
                   path);
}

const Tensor *Checkpoint::find(std::string_view name) const {
  auto found = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const Tensor &tensor, std::string_view wanted) { return tensor.name < wanted; });
  return found != tensors_.end() && found->name == name ? &*found : nullptr;
}

Result<std::vector<int32_t>> Checkpoint::configuredEndOfGeneration() const {
  if (format_ == CheckpointFormat::Gguf) {
    STRATA_ASSIGN_OR_RETURN(std::optional<Vocabulary> found, vocabulary());
    return found ? std::move(found->endOfGeneration) : std::vector<int32_t>();
  }
  return strata::configuredEndOfGeneration(generationConfig_, config_);
}

Status Checkpoint::indexTensors() {
  std::sort(tensors_.begin(), tensors_.end(),
            [](const Tensor &a, const Tensor &b) { return a.name < b.name; });
  auto twice =
      std::adjacent_find(tensors_.begin(), tensors_.end(),
                         [](const Tensor &a, const Tensor &b) { return a.name == b.name; });
  if (twice != tensors_.end())
    return makeError(StatusCode::InvalidData, "tensor '{}' appears twice in '{}'",
                     printable(twice->name), path_);
  return Status::ok();
}

Result<Vocabulary> readVocabulary(const std::string &path) {
  Result<std::optional<Vocabulary>> vocabulary = std::optional<Vocabulary>();
  if (isFolder(path))
    vocabulary = readFolderOf(path);
  else if (std::filesystem::path(path).filename() == "tokenizer.json")
    vocabulary = readTokenizerFileWithSiblings(path);
  else if (isJson(path))
    vocabulary = readTokenizerFileAlone(path);
  else
    vocabulary = readGgufFile(path);
  if (!vocabulary.isOk())
    return std::move(vocabulary).status();
  if (!*vocabulary)
    return makeError(StatusCode::NotFound, "'{}' holds no tokenizer", path);
  return std::move(**vocabulary);
}

} // namespace strata
