#include "runtime/checkpoint/HuggingFaceCheckpoint.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <unordered_map>

#include "runtime/checkpoint/Json.h"
#include "runtime/checkpoint/SafetensorsFile.h"
#include "runtime/checkpoint/Text.h"
#include "runtime/checkpoint/TokenizerJson.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char *singleFile = "model.safetensors";
constexpr const char *indexFile = "model.safetensors.index.json";

/// Where each tensor lies: tensor name to shard, from the index's `weight_map`.
using WeightMap = std::map<std::string, std::string>;

class HuggingFaceCheckpoint final : public Checkpoint {
public:
  explicit HuggingFaceCheckpoint(std::string folder)
      : Checkpoint(CheckpointFormat::HuggingFace, std::move(folder)) {}

  Status load();

  Result<std::optional<Vocabulary>> vocabulary() const override {
    return readFolderVocabulary(path_, config_, generationConfig_);
  }

private:
  bool has(const char *name) const {
    std::error_code ignored;
    return std::filesystem::exists(std::filesystem::path(path_) / name, ignored);
  }
  std::string inFolder(const std::string &name) const {
    return (std::filesystem::path(path_) / name).string();
  }
  Status loadSingleFile();
  Status loadShards();
  Status addTensor(const SafetensorsEntry &entry, const std::string &file);
  Status refuseScaledTensors() const;

  std::vector<SafetensorsFile> files_; ///< Keep the mappings alive.
};

class ConfigCheckpoint final : public Checkpoint {
public:
  ConfigCheckpoint(std::string file, Json config)
      : Checkpoint(CheckpointFormat::ConfigOnly, std::move(file)) {
    config_ = std::move(config);
  }
  Result<std::optional<Vocabulary>> vocabulary() const override {
    return std::optional<Vocabulary>();
  }
};

/// The weight type that a safetensors dtype is: the plain one of the same name.
const WeightType *weightTypeOfDtype(std::string dtype) {
  std::transform(dtype.begin(), dtype.end(), dtype.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  const WeightType *type = findWeightType(dtype);
  return type && type->isPlain() ? type : nullptr;
}

/// Weights that another tool quantised lie in tensors of names and layouts of its own.
Status refuseQuantization(const Json &config) {
  for (std::string_view key : {"quantization_config", "compression_config"}) {
    const Json *quantization = findMember(config, key);
    if (!quantization)
      continue;
    const Json *method =
        quantization->is_object() ? findMember(*quantization, "quant_method") : nullptr;
    return makeError(StatusCode::Unimplemented,
                     "config.json: '{}' says that the weights are quantised by '{}', which is not "
                     "read; take the model's unquantised folder or a GGUF file of it",
                     key,
                     method && method->is_string()
                         ? printable(method->get_ref<const std::string &>())
                         : "an unnamed method");
  }
  return Status::ok();
}

/// A shard is a file of the same folder and never a way out of it.
Status checkShardName(const std::string &tensor, const std::string &shard) {
  if (!shard.empty() && shard != "." && shard != ".." &&
      shard.find_first_of(std::string("/\\\0", 3)) == std::string::npos)
    return Status::ok();
  return makeError(StatusCode::InvalidData,
                   "'{}' maps tensor '{}' to '{}'; only plain file names in the same folder are "
                   "allowed",
                   indexFile, printable(tensor), printable(shard));
}

Result<WeightMap> readWeightMap(const Json &index) {
  const Json *map = findMember(index, "weight_map");
  if (!map || !map->is_object())
    return makeError(StatusCode::InvalidData, "'{}' has no object 'weight_map'", indexFile);
  WeightMap weights;
  for (const auto &[tensor, shard] : map->items()) {
    if (!shard.is_string())
      return makeError(StatusCode::InvalidData,
                       "'{}' maps tensor '{}' to {}; it must be a file's name", indexFile,
                       printable(tensor), jsonKind(shard));
    const auto &name = shard.get_ref<const std::string &>();
    STRATA_RETURN_IF_ERROR(checkShardName(tensor, name));
    weights.emplace(tensor, name);
  }
  return weights;
}

Status HuggingFaceCheckpoint::addTensor(const SafetensorsEntry &entry, const std::string &file) {
  const WeightType *type = weightTypeOfDtype(entry.dtype);
  if (!type) {
    std::string readable;
    for (const WeightType &known : weightTypes())
      if (known.isPlain())
        readable += fmt::format("{}{}", readable.empty() ? "" : ", ", known.name);
    return makeError(StatusCode::Unimplemented,
                     "tensor '{}' of '{}' has dtype {}, which is not read; dtypes read: {}",
                     printable(entry.name), file, entry.dtype, readable);
  }
  tensors_.push_back({entry.name, type, entry.shape, entry.bytes});
  return Status::ok();
}

Status HuggingFaceCheckpoint::loadSingleFile() {
  STRATA_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(inFolder(singleFile)));
  for (const SafetensorsEntry &entry : file.entries())
    STRATA_RETURN_IF_ERROR(addTensor(entry, singleFile));
  files_.push_back(std::move(file));
  return Status::ok();
}

Status HuggingFaceCheckpoint::loadShards() {
  STRATA_ASSIGN_OR_RETURN(Json index, readJsonFile(inFolder(indexFile)));
  STRATA_ASSIGN_OR_RETURN(WeightMap weights, readWeightMap(index));
  std::map<std::string, uint64_t> shards; // to the number of tensors mapped to each
  for (const auto &[tensor, shard] : weights)
    ++shards[shard];

  std::unordered_map<std::string, std::string> found; // every tensor of every shard
  for (const auto &[shard, mapped] : shards) {
    STRATA_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(inFolder(shard)));
    uint64_t taken = 0;
    for (const SafetensorsEntry &entry : file.entries()) {
      auto [former, isNew] = found.emplace(entry.name, shard);
      if (!isNew)
        return makeError(StatusCode::InvalidData, "tensor '{}' lies in two shards, '{}' and '{}'",
                         printable(entry.name), former->second, shard);
      auto wanted = weights.find(entry.name);
      if (wanted == weights.end() || wanted->second != shard)
        continue;
      STRATA_RETURN_IF_ERROR(addTensor(entry, shard));
      ++taken;
    }
    if (taken < file.entries().size())
      notes_.push_back(fmt::format("'{}' holds {} tensors that '{}' does not name; they are left "
                                   "out",
                                   shard, file.entries().size() - taken, indexFile));
    files_.push_back(std::move(file));
    if (taken == mapped)
      continue;
    for (const auto &[tensor, file] : weights)
      if (auto at = found.find(tensor); file == shard && (at == found.end() || at->second != shard))
        return makeError(StatusCode::InvalidData,
                         "'{}' maps tensor '{}' to '{}', which does not hold it", indexFile,
                         printable(tensor), shard);
  }
  return Status::ok();
}

/// An 8-bit weight with scales beside it would be read as if it had none. After indexTensors().
Status HuggingFaceCheckpoint::refuseScaledTensors() const {
  for (const Tensor &tensor : tensors_) {
    if (tensor.type->name != "f8_e4m3")
      continue;
    for (const char *suffix : {"_scale_inv", "_scale"})
      if (const Tensor *scale = find(tensor.name + suffix))
        return makeError(StatusCode::Unimplemented,
                         "tensor '{}' is F8_E4M3 with scales in '{}', which are not read; take the "
                         "model's BF16 folder or a GGUF file of it",
                         printable(tensor.name), printable(scale->name));
  }
  return Status::ok();
}

Status HuggingFaceCheckpoint::load() {
  if (!has("config.json"))
    return makeError(StatusCode::NotFound,
                     "folder '{}' has no config.json; name a Hugging Face folder, a GGUF file or a "
                     "config.json",
                     path_);
  STRATA_ASSIGN_OR_RETURN(config_, readJsonFile(inFolder("config.json")));
  STRATA_RETURN_IF_ERROR(refuseQuantization(config_));
  if (has("generation_config.json")) {
    STRATA_ASSIGN_OR_RETURN(generationConfig_, readJsonFile(inFolder("generation_config.json")));
  }
  if (has(indexFile))
    STRATA_RETURN_IF_ERROR(loadShards());
  else if (has(singleFile))
    STRATA_RETURN_IF_ERROR(loadSingleFile());
  else
    return makeError(StatusCode::NotFound,
                     "folder '{}' has neither {} nor {}; name its config.json itself for a plan "
                     "without weights",
                     path_, singleFile, indexFile);
  STRATA_RETURN_IF_ERROR(indexTensors());
  return refuseScaledTensors();
}

} // namespace

Result<std::unique_ptr<Checkpoint>> openHuggingFaceCheckpoint(const std::string &folder) {
  auto checkpoint = std::make_unique<HuggingFaceCheckpoint>(folder);
  Status status = checkpoint->load();
  if (!status.isOk())
    return std::move(status).at("folder", folder);
  return std::unique_ptr<Checkpoint>(std::move(checkpoint));
}

Result<std::unique_ptr<Checkpoint>> openConfigCheckpoint(const std::string &file) {
  STRATA_ASSIGN_OR_RETURN(Json config, readJsonFile(file));
  return std::unique_ptr<Checkpoint>(std::make_unique<ConfigCheckpoint>(file, std::move(config)));
}

} // namespace strata
