// A checkpoint: the configuration, the tensors and the vocabulary of a model as files on disk.
//
// Three forms are read: a GGUF file, a Hugging Face folder (config.json, *.safetensors, tokenizer.json)
// and a bare config.json without weights. Tensor bytes are memory-mapped and never copied here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/base/Status.h"
#include "runtime/checkpoint/WeightTypeTable.h"
#include "runtime/tokenizer/Vocabulary.h"

namespace strata {

enum class CheckpointFormat { Gguf, HuggingFace, ConfigOnly };

/// One stored tensor. `bytes` points into a mapping that the Checkpoint keeps alive.
struct Tensor {
  std::string name;
  const WeightType *type;
  std::vector<uint64_t> shape; ///< Row-major, outermost first: a linear layer is [out, in].
  std::span<const std::byte> bytes;
};

class Checkpoint {
public:
  virtual ~Checkpoint() = default;

  /// Opens by what `path` is: a folder, a `.json` file or a GGUF file (by its magic). Every length,
  /// offset and size is verified against the files before it is used.
  /// Errors: NotFound, InvalidData (names thing, number, limit and remedy), Unimplemented (a type or
  /// form that is not read, by name).
  static Result<std::unique_ptr<Checkpoint>> open(const std::string &path);

  CheckpointFormat format() const { return format_; }
  const std::string &path() const { return path_; }

  /// Hugging Face: config.json as it stands. GGUF: the key/value pairs, keys verbatim, without the
  /// `tokenizer.` keys (those are in the vocabulary).
  const nlohmann::ordered_json &config() const { return config_; }

  /// Hugging Face: generation_config.json where present, else null.
  const nlohmann::ordered_json &generationConfig() const { return generationConfig_; }

  std::span<const Tensor> tensors() const { return tensors_; }
  const Tensor *find(std::string_view name) const; ///< nullptr where absent.

  /// Absent where the checkpoint holds no tokenizer (it then takes and gives ids only).
  /// Errors: InvalidData or Unimplemented where it holds one that cannot be read.
  virtual Result<std::optional<Vocabulary>> vocabulary() const = 0;

protected:
  Checkpoint(CheckpointFormat format, std::string path) : format_(format), path_(std::move(path)) {}

  /// Sorts the tensors by name and refuses duplicates; call once after `tensors_` is filled.
  Status indexTensors();

  CheckpointFormat format_;
  std::string path_;
  nlohmann::ordered_json config_;
  nlohmann::ordered_json generationConfig_;
  std::vector<Tensor> tensors_;
};

} // namespace strata
