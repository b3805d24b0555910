// A Hugging Face tokenizer.json, with the files that complete it, as a Vocabulary.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "runtime/base/Status.h"
#include "runtime/tokenizer/Vocabulary.h"

namespace strata {

/// All but `tokenizer` may be null.
struct TokenizerDocuments {
  nlohmann::ordered_json tokenizer;        ///< tokenizer.json
  nlohmann::ordered_json tokenizerConfig;  ///< tokenizer_config.json: BOS, EOS, chat template
  nlohmann::ordered_json config;           ///< config.json: ids where the former has no names
  nlohmann::ordered_json generationConfig; ///< generation_config.json: what ends a generation
  nlohmann::ordered_json chatTemplateJson; ///< chat_template.json: wins over tokenizer_config.json
  std::optional<std::string> chatTemplate; ///< chat_template.jinja: wins over both
};

/// Reads byte-level BPE, and SentencePiece-style BPE (byte fallback) and unigram models (U+2581 for
/// a space). Errors: InvalidData (inconsistent), Unimplemented (a model, normalizer, pre-tokenizer
/// or post-processor that would change the ids and is not read, by name).
Result<Vocabulary> readTokenizerJson(const TokenizerDocuments &documents);

/// The tokenizer of a Hugging Face folder; absent where it has none. `config` and
/// `generationConfig` are the folder's, already read. Errors: as above; Unimplemented for a
/// tokenizer in another form
/// (`tokenizer.model`, `vocab.json`).
Result<std::optional<Vocabulary>>
readFolderVocabulary(const std::string &folder, const nlohmann::ordered_json &config,
                     const nlohmann::ordered_json &generationConfig);

} // namespace strata
