// A checkpoint: the configuration, the tensors and the vocabulary of a model as files on disk.
//
// Three forms are read: a GGUF file, a Hugging Face folder (config.json, *.safetensors,
// tokenizer.json) and a bare config.json without weights. Tensor bytes are memory-mapped and never
// copied here.
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
  /// Errors: NotFound, InvalidData (names thing, number, limit and remedy), Unimplemented (a type
  /// or form that is not read, by name).
  static Result<std::unique_ptr<Checkpoint>> open(const std::string &path);

  CheckpointFormat format() const { return format_; }
  const std::string &path() const { return path_; }

  /// Hugging Face: config.json as it stands. GGUF: the key/value pairs, keys verbatim, arrays as
  /// arrays, without the `tokenizer.` keys (those are in the vocabulary) and the `split.` keys.
  const nlohmann::ordered_json &config() const { return config_; }

  /// Hugging Face: generation_config.json where present, else null.
  const nlohmann::ordered_json &generationConfig() const { return generationConfig_; }

  std::span<const Tensor> tensors() const { return tensors_; }
  const Tensor *find(std::string_view name) const; ///< nullptr where absent.

  /// The ids that the checkpoint says end a generation, also where it holds no vocabulary:
  /// generation_config.json before config.json; GGUF: the vocabulary's. Not checked against a
  /// vocabulary's size where there is none. Errors: InvalidData, and those of `vocabulary`.
  Result<std::vector<int32_t>> configuredEndOfGeneration() const;

  /// What a person may want to know of the files (tensors left out, ...), one sentence each.
  std::span<const std::string> notes() const { return notes_; }

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
  std::vector<std::string> notes_;
};

/// The vocabulary alone of a GGUF file (its tensors are not read, so one that holds only a
/// vocabulary, or tensors of unknown types, will do), of a Hugging Face folder or of a
/// tokenizer.json. A file that is named tokenizer.json is read with those beside it
/// (tokenizer_config.json, config.json, generation_config.json, chat_template.jinja,
/// chat_template.json); a `.json` of another name stands alone. Errors: NotFound (no file, or no
/// tokenizer in it), InvalidData, Unimplemented (by name).
Result<Vocabulary> readVocabulary(const std::string &path);

} // namespace strata
