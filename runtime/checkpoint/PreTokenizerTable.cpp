#include "runtime/checkpoint/PreTokenizerTable.h"

#include <array>
#include <span>

namespace strata {
namespace {

// Patterns are data: they must equal, byte for byte, what the models were trained with.

constexpr const char *gpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";

constexpr const char *llama3Pattern =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr const char *qwen2Pattern =
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr const char *tekkenPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::array gpt2 = {gpt2Pattern};
constexpr std::array llama3 = {llama3Pattern};
constexpr std::array qwen2 = {qwen2Pattern};
constexpr std::array tekken = {tekkenPattern};
constexpr std::array smollm = {R"(\p{N})", gpt2Pattern};
// U+4E00..9FA5 are Han, U+3040..30FF kana.
constexpr std::array deepseekV3 = {
    R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
// U+0800..4E00 is as wide as the model's own file has it.
constexpr std::array deepseekCoder = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                      R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)",
                                      R"(\p{N})"};
constexpr std::array fallback = {R"([\p{P}\$\+<=>\^~\|]+)", gpt2Pattern, R"(\p{N}+)",
                                 R"([0-9][0-9][0-9])"};

struct Row {
  std::string_view name;
  std::span<const char *const> patterns;
  bool ignoreMerges, addBos;
};

constexpr std::array<Row, 10> rows = {{{"llama-bpe", llama3, true, true},
                                       {"llama3", llama3, true, true},
                                       {"pixtral", llama3, true, true},
                                       {"qwen2", qwen2, false, false},
                                       {"gpt-2", gpt2, false, false},
                                       {"smollm", smollm, false, false},
                                       {"tekken", tekken, true, true},
                                       {"deepseek-v3", deepseekV3, false, false},
                                       {"deepseek-coder", deepseekCoder, false, false},
                                       {"default", fallback, false, false}}};

} // namespace

Result<NamedPreTokenizer> namedPreTokenizer(std::string_view name) {
  std::string known;
  for (const Row &row : rows) {
    if (row.name == name)
      return NamedPreTokenizer{{std::string(name), {row.patterns.begin(), row.patterns.end()}},
                               row.ignoreMerges,
                               row.addBos};
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  return makeError(StatusCode::Unimplemented, "the pre-tokeniser '{}' is not known; known are {}",
                   name, known);
}

std::string_view byteLevelPattern() { return gpt2Pattern; }

} // namespace strata
