// A vocabulary as data: what a checkpoint holds, what a plan stores, what a Tokenizer is made from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace strata {

enum class VocabularyModel : uint8_t {
  ByteLevelBpe,     ///< GGUF `gpt2`: merges over the byte-to-printable map.
  SentencePieceBpe, ///< GGUF `llama`: merges by score, byte fallback.
};

/// GGUF's numbering.
enum class TokenKind : uint8_t {
  Normal = 1,
  Unknown = 2,
  Control = 3,
  UserDefined = 4,
  Unused = 5,
  Byte = 6
};

/// How a text is cut before merging (byte-level BPE only): a list of regular expressions applied in
/// sequence. Each pattern splits every piece of the former step into matches and the gaps between.
struct PreTokenizer {
  std::string name;                  ///< `smollm`, `llama-bpe`, ..., or `tokenizer.json`.
  std::vector<std::string> patterns; ///< PCRE2 syntax, UTF and UCP mode.
};

struct Vocabulary {
  VocabularyModel model = VocabularyModel::ByteLevelBpe;
  std::vector<std::string>
      tokens;                   ///< By id. Byte-level: in printable code points; specials verbatim.
  std::vector<TokenKind> kinds; ///< Same length as `tokens`.
  std::vector<float> scores;    ///< SentencePiece only, same length as `tokens`.
  std::vector<std::string> merges; ///< Byte-level only: "left right", by rank.
  PreTokenizer preTokenizer;       ///< Byte-level only.
  int32_t bosId = -1;              ///< -1 where the model has none.
  int32_t eosId = -1;
  int32_t unknownId = -1;
  bool addBos = false;
  bool addEos = false;
  bool addSpacePrefix =
      false; ///< SentencePiece: a space before the text and after each special token.
  bool ignoreMerges = false; ///< Byte-level: a piece that is itself a token is emitted unmerged.
  std::vector<int32_t> endOfGeneration; ///< Sorted; any of these ids ends a generation.
  std::string chatTemplate;             ///< Jinja source; empty where absent.
};

} // namespace strata
