#include "runtime/checkpoint/PreTokenizerTable.h"

#include <span>

namespace strata {
namespace {

// Patterns are data: they must cut where those that the models were trained with do. Where the
// original would scan a long run again from every one of its characters, it is written so that it
// is scanned once.

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

constexpr const char *gpt4oPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// U+4E00..9FA5 are Han, U+3040..30FF kana.
constexpr const char *hanAndKana = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
// U+0800..4E00 is as wide as the model's own file has it.
constexpr const char *wideHan = R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
constexpr const char *deepseekV3Pattern =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char *bloomPattern =
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+)";

constexpr const char *gpt2[] = {gpt2Pattern};
constexpr const char *llama3[] = {llama3Pattern};
constexpr const char *qwen2[] = {qwen2Pattern};
constexpr const char *tekken[] = {tekkenPattern};
constexpr const char *gpt4o[] = {gpt4oPattern};
constexpr const char *smollm[] = {R"(\p{N})", gpt2Pattern};
constexpr const char *falcon[] = {R"([\p{P}\$\+<=>\^~\|`]+)", gpt2Pattern, R"([0-9][0-9][0-9])"};
constexpr const char *fallback[] = {R"([\p{P}\$\+<=>\^~\|]+)", gpt2Pattern, R"(\p{N}+)",
                                    R"([0-9][0-9][0-9])"};
constexpr const char *deepseekV3[] = {R"(\p{N}{1,3})", hanAndKana, deepseekV3Pattern};
constexpr const char *deepseekCoder[] = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", wideHan,
                                         R"(\p{N})"};
constexpr const char *bloom[] = {bloomPattern};
constexpr const char *viking[] = {bloomPattern, R"(\p{N})"};

// The letters are those of the model's own file: cased ones, some left out.
constexpr const char *deepseekLlm[] = {
    R"([\r\n])",
    R"(\s?[A-Za-z)"
    R"(\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})"
    R"(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386})"
    R"(\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F})"
    R"(\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA})"
    R"(\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A})"
    R"(\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D})"
    R"(\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4})"
    R"(\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3})"
    R"(\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107})"
    R"(\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D})"
    R"(\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184})"
    R"(\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})"
    R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E})"
    R"(\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A})"
    R"(\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB})"
    R"(\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943})"
    R"(]+)",
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)",
    R"((?<!\s)\s++$)", // \s+$
    wideHan,
    R"(\p{N}+)"};

// Two classes of gpt-4o's without Han, which stands apart: X = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
// and Y = [\p{Ll}\p{Lm}\p{Lo}\p{M}]. X*Y+ ends behind the lower-case letters that follow the run of
// X, else behind the last of the run that is in both.
constexpr const char *kimiK2[] = {
    R"((?(DEFINE)(?<both>(?!\p{sc:Han})[\p{Lm}\p{Lo}\p{M}])(?<contraction>)"
    R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])))"
    R"(\p{sc:Han}+)"
    R"(|[^\r\n\p{L}\p{N}]?(?:(?:[\p{Lu}\p{Lt}]++|(?&both))*+\p{Ll}(?:\p{Ll}++|(?&both))*+)"
    R"(|(?:[\p{Lu}\p{Lt}]*+(?&both)++)++)(?&contraction)?)"
    R"(|[^\r\n\p{L}\p{N}]?(?:[\p{Lu}\p{Lt}]++|(?&both))++(?:\p{Ll}++|(?&both))*+(?&contraction)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};

constexpr const char *qwen35[] = {
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+)"
    R"(|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr const char *bailing[] = {
    R"('(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr const char *seedCoder[] = {
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
    R"(| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr const char *exaoneMoe[] = {
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]))"
    R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*+(?: \p{L}\p{M}*+)*+)++|\p{N})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr const char *jais2[] = {
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|(?<![^\S\r\n])\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S))"
    R"(|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})"};
constexpr const char *minicpm5[] = {
    R"(\p{N}{1,3})",
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+)"
    R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr const char *chameleon[] = {
    R"(<sentinel:[0-9]+>)",    R"((IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z)",
    R"(([\t\n]|    |  ))",     R"(\p{N})",
    R"([\p{P}!-/:-@\[-`{-~])", gpt2Pattern};
// Digits in groups of three counted from their end: `(?=(\d{3})+(?!\d))`, an empty match before
// each group.
constexpr const char *superbpe[] = {R"(\p{N}+)",
                                    R"((?<!\d)\d{0,2}\K(?=(?:\d{3})++(?!\d))|\G\d\d\K(?=\d))"};
// The first is `\d{1,3}(?=(?:\d{3})*\b)`.
constexpr const char *tinyAya[] = {R"((?<!\d)\d{1,3}(?=(?:\d{3})*+\b)|(?<=\d)\G\d{3})",
                                   gpt4oPattern};
// Hangul; punctuation; bopomofo; Han and kana.
constexpr const char *youtu[] = {
    R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+)"
    R"(|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C})"
    R"(\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+)"
    R"(|[\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr const char *laguna[] = {R"([^\n]+|[\n]+)", qwen2Pattern};

struct Row {
  std::string_view name;
  std::span<const char *const> patterns;
  bool ignoreMerges = false, addBos = false;
};

constexpr Row rows[] = {
    {"default", fallback},
    {"llama-bpe", llama3, true, true},
    {"llama3", llama3, true, true},
    {"llama-v3", llama3, true, true},
    {"pixtral", llama3, true, true},
    {"falcon3", llama3, true, true},
    {"falcon-h1", llama3, true, true},
    {"midm-2.0", llama3, true, true},
    {"lfm2", llama3, true, true},
    {"dbrx", llama3},
    {"smaug-bpe", llama3},
    {"glm4", llama3},
    {"chatglm-bpe", llama3},
    {"jais-2", jais2},
    {"minicpm5", minicpm5, true},
    {"gpt-2", gpt2},
    {"phi-2", gpt2},
    {"mpt", gpt2},
    {"olmo", gpt2},
    {"jais", gpt2},
    {"trillion", gpt2},
    {"granite-docling", gpt2},
    {"exaone4", gpt2},
    {"gigachat", gpt2},
    {"a.x-4.0", gpt2},
    {"mellum", gpt2},
    {"smollm", smollm},
    {"starcoder", smollm},
    {"refact", smollm},
    {"command-r", smollm},
    {"codeshell", smollm},
    {"exaone", smollm},
    {"minerva-7b", smollm},
    {"mellum2", smollm},
    {"qwen2", qwen2},
    {"deepseek-r1-qwen", qwen2},
    {"stablelm2", qwen2},
    {"megrez", qwen2},
    {"hunyuan", qwen2},
    {"solar-open", qwen2},
    {"grok-2", qwen2},
    {"kormo", qwen2},
    {"qwen35", qwen35},
    {"laguna", laguna},
    {"bailingmoe", bailing},
    {"bailingmoe2", bailing},
    {"llada-moe", bailing},
    {"seed-coder", seedCoder},
    {"exaone-moe", exaoneMoe},
    {"tekken", tekken, true, true},
    {"gpt-4o", gpt4o},
    {"llama4", gpt4o},
    {"kanana2", gpt4o},
    {"minimax-m2", gpt4o},
    {"tiny_aya", tinyAya},
    {"youtu", youtu, true},
    {"kimi-k2", kimiK2},
    {"deepseek-llm", deepseekLlm},
    {"deepseek-coder", deepseekCoder},
    {"deepseek-v3", deepseekV3},
    {"hunyuan-dense", deepseekV3},
    {"joyai-llm", deepseekV3},
    {"falcon", falcon},
    {"bloom", bloom},
    {"gpt3-finnish", bloom},
    {"poro-chat", bloom},
    {"viking", viking},
    {"chameleon", chameleon, false, true},
    {"superbpe", superbpe},
};

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

std::vector<std::string_view> preTokenizerNames() {
  std::vector<std::string_view> names;
  for (const Row &row : rows)
    names.push_back(row.name);
  return names;
}

std::string_view byteLevelPattern() { return gpt2Pattern; }

} // namespace strata
