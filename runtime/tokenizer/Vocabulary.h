// A vocabulary as data: what a checkpoint holds, what a plan stores, what a Tokenizer is made from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace strata {

enum class VocabularyModel : uint8_t {
  ByteLevelBpe,     ///< GGUF `gpt2`: merges over the byte-to-printable map.
  SentencePieceBpe, ///< GGUF `llama`: merges by score, byte fallback.
  Unigram,          ///< GGUF `t5`: the cut of the best sum of scores.
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

/// What becomes of the matches of a pattern; of the gaps where `invert`.
enum class SplitBehavior : uint8_t {
  Isolated,           ///< Each is a piece.
  Removed,            ///< Each disappears.
  MergedWithPrevious, ///< Each ends the piece before it.
  MergedWithNext,     ///< Each begins the piece behind it.
  Contiguous,         ///< Neighbours are one piece.
};

struct PatternUse {
  SplitBehavior behavior = SplitBehavior::Isolated;
  bool invert = false;
};

/// How a text is cut before merging (byte-level BPE only): a list of regular expressions applied in
/// sequence. Each pattern splits every piece of the former step into matches and the gaps between.
struct PreTokenizer {
  std::string name;                  ///< `smollm`, `llama-bpe`, ..., or `tokenizer.json`.
  std::vector<std::string> patterns; ///< PCRE2 syntax, UTF and UCP mode.
  std::vector<PatternUse> uses = {}; ///< One for each pattern, or none: all isolated.
};

/// A change of the text between special tokens, before it is cut and merged.
struct TextStep {
  enum class Kind : uint8_t {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
    Lowercase,    ///< Each character alone, without regard to its place in a word.
    Replace,      ///< Every match of `pattern` becomes `content`.
    Prepend,      ///< `content` goes before a text that is not empty.
    StripLeft,    ///< White space at the beginning goes.
    StripRight,   ///< White space at the end goes.
    CharacterMap, ///< `content` is SentencePiece's precompiled map.
  };
  Kind kind;
  std::string pattern = {}; ///< PCRE2 syntax, as in PreTokenizer.
  std::string content = {};
};

/// How a user-defined or control token is found in a text, where it is not found verbatim.
struct TokenRule {
  int32_t id;
  bool stripLeft = false;  ///< White space before it belongs to it.
  bool stripRight = false; ///< White space behind it belongs to it.
  bool singleWord = false; ///< Not where a word character touches it.
  bool normalized = false; ///< In the text that the steps made, as the steps make it.
};

struct Vocabulary {
  VocabularyModel model = VocabularyModel::ByteLevelBpe;
  std::vector<std::string>
      tokens;                   ///< By id. Byte-level: in printable code points; specials verbatim.
  std::vector<TokenKind> kinds; ///< Same length as `tokens`.
  std::vector<float> scores;    ///< SentencePiece and Unigram, same length as `tokens`.
  std::vector<std::string> merges; ///< Byte-level only: "left right", by rank.
  PreTokenizer preTokenizer;       ///< Byte-level only.
  int32_t bosId = -1;              ///< -1 where the model has none.
  int32_t eosId = -1;
  int32_t unknownId = -1;
  bool addBos = false;
  bool addEos = false;
  bool addSpacePrefix = false;    ///< A space before the text and after each special token.
  bool prefixStartOnly = false;   ///< ... only where the input itself begins.
  bool prefixUnlessSpace = false; ///< ... not where a space stands there already.
  bool splitAtSpaces =
      false; ///< SentencePiece and Unigram: no token reaches across a space's front.
  bool ignoreMerges = false;   ///< Byte-level: a piece that is itself a token is emitted unmerged.
  std::vector<TextStep> steps; ///< Applied in sequence.
  std::vector<TokenRule> tokenRules;    ///< At most one for an id.
  std::vector<int32_t> endOfGeneration; ///< Sorted; any of these ids ends a generation.
  std::string chatTemplate;             ///< Jinja source; empty where absent.
};

} // namespace strata
