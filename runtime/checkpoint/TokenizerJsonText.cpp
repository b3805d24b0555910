#include "runtime/checkpoint/TokenizerJsonText.h"

#include "runtime/checkpoint/Json.h"
#include "runtime/checkpoint/PreTokenizerTable.h"
#include "runtime/checkpoint/Text.h"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view spaceMark = "\xE2\x96\x81"; // U+2581

bool isString(const Json *value, std::string_view text) {
  return value && value->is_string() && value->get_ref<const std::string &>() == text;
}

Status notRead(std::string_view field, std::string_view what) {
  return makeError(StatusCode::Unimplemented, "tokenizer.json: the {} {} is not read", field, what);
}

/// A literal text as a PCRE2 pattern.
std::string escapeLiteral(std::string_view literal) {
  std::string pattern;
  for (char c : literal) {
    if (std::string_view("\\^$.[]|()?*+{}-#").find(c) != std::string_view::npos)
      pattern += '\\';
    pattern += c;
  }
  return pattern;
}

Result<std::string> stringMember(const Json &step, std::string_view field, std::string_view key) {
  const Json *value = findMember(step, key);
  if (!value || !value->is_string())
    return makeError(StatusCode::InvalidData, "tokenizer.json: a step of the {} has no string '{}'",
                     field, key);
  return value->get<std::string>();
}

/// The `pattern` of a step as a regular expression.
Result<std::string> patternMember(const Json &step, std::string_view field) {
  const Json *pattern = findMember(step, "pattern");
  for (const char *kind : {"Regex", "String"}) {
    const Json *text = pattern ? findMember(*pattern, kind) : nullptr;
    if (text && text->is_string()) {
      const auto &source = text->get_ref<const std::string &>();
      return kind[0] == 'R' ? source : escapeLiteral(source);
    }
  }
  return makeError(StatusCode::InvalidData,
                   "tokenizer.json: a step of the {} has neither a 'Regex' nor a 'String' pattern",
                   field);
}

Result<std::string> decodeBase64(std::string_view text) {
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  while (text.ends_with('='))
    text.remove_suffix(1);
  for (char c : text) {
    int digit = c >= 'A' && c <= 'Z'   ? c - 'A'
                : c >= 'a' && c <= 'z' ? c - 'a' + 26
                : c >= '0' && c <= '9' ? c - '0' + 52
                : c == '+'             ? 62
                : c == '/'             ? 63
                                       : -1;
    if (digit < 0)
      return makeError(StatusCode::InvalidData,
                       "tokenizer.json: 'precompiled_charsmap' is not base64");
    bits = bits << 6 | uint32_t(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(char(bits >> count));
    }
  }
  return bytes;
}

Status addNormalizer(const Json &step, const std::string &type, TokenizerText &text) {
  constexpr std::string_view field = "normalizer";
  using Kind = TextStep::Kind;
  if (text.spacesBecomeMarks)
    return notRead(
        field, fmt::format("'{}' after the one that replaces spaces by U+2581", printable(type)));
  constexpr std::pair<std::string_view, Kind> plain[] = {{"NFC", Kind::Nfc},
                                                         {"NFD", Kind::Nfd},
                                                         {"NFKC", Kind::Nfkc},
                                                         {"NFKD", Kind::Nfkd},
                                                         {"Lowercase", Kind::Lowercase}};
  for (auto [name, kind] : plain)
    if (type == name) {
      text.steps.push_back({kind});
      return Status::ok();
    }
  if (type == "Prepend") {
    STRATA_ASSIGN_OR_RETURN(std::string content, stringMember(step, field, "prepend"));
    if (content == spaceMark)
      text.addSpacePrefix = true;
    else
      text.steps.push_back({Kind::Prepend, {}, std::move(content)});
    return Status::ok();
  }
  if (type == "Replace") {
    STRATA_ASSIGN_OR_RETURN(std::string pattern, patternMember(step, field));
    STRATA_ASSIGN_OR_RETURN(std::string content, stringMember(step, field, "content"));
    if (pattern == " " && content == spaceMark)
      text.spacesBecomeMarks = true;
    else
      text.steps.push_back({Kind::Replace, std::move(pattern), std::move(content)});
    return Status::ok();
  }
  if (type == "Strip") {
    STRATA_ASSIGN_OR_RETURN(bool left, booleanMember(step, "strip_left", true));
    STRATA_ASSIGN_OR_RETURN(bool right, booleanMember(step, "strip_right", true));
    if (left)
      text.steps.push_back({Kind::StripLeft});
    if (right)
      text.steps.push_back({Kind::StripRight});
    return Status::ok();
  }
  if (type == "Precompiled") {
    if (!findMember(step, "precompiled_charsmap")) // some files have the step without a map
      return Status::ok();
    STRATA_ASSIGN_OR_RETURN(std::string encoded, stringMember(step, field, "precompiled_charsmap"));
    STRATA_ASSIGN_OR_RETURN(std::string map, decodeBase64(encoded));
    if (!map.empty())
      text.steps.push_back({Kind::CharacterMap, {}, std::move(map)});
    return Status::ok();
  }
  return notRead(field, fmt::format("'{}'", printable(type)));
}

Status addSplit(const Json &step, TokenizerText &text) {
  constexpr std::string_view field = "pre_tokenizer";
  STRATA_ASSIGN_OR_RETURN(std::string pattern, patternMember(step, field));
  // A normalizer has left no space to split at.
  if (pattern == " " && text.spacesBecomeMarks)
    return Status::ok();
  STRATA_ASSIGN_OR_RETURN(std::string behavior, stringMember(step, field, "behavior"));
  STRATA_ASSIGN_OR_RETURN(bool invert, booleanMember(step, "invert", false));
  constexpr std::pair<std::string_view, SplitBehavior> known[] = {
      {"Isolated", SplitBehavior::Isolated},
      {"Removed", SplitBehavior::Removed},
      {"MergedWithPrevious", SplitBehavior::MergedWithPrevious},
      {"MergedWithNext", SplitBehavior::MergedWithNext},
      {"Contiguous", SplitBehavior::Contiguous}};
  for (auto [name, value] : known)
    if (behavior == name) {
      text.addPattern(std::move(pattern), {value, invert});
      return Status::ok();
    }
  return notRead(field, fmt::format("'Split' with behavior '{}'", printable(behavior)));
}

Status addMetaspace(const Json &step, TokenizerText &text) {
  if (!isString(findMember(step, "replacement"), spaceMark))
    return notRead("pre_tokenizer", "'Metaspace' with another replacement than U+2581");
  STRATA_ASSIGN_OR_RETURN(text.splitAtSpaces, booleanMember(step, "split", true));
  STRATA_ASSIGN_OR_RETURN(bool prefix, booleanMember(step, "add_prefix_space", true));
  if (const Json *scheme = findMember(step, "prepend_scheme")) {
    prefix = !isString(scheme, "never");
    text.prefixStartOnly = isString(scheme, "first");
    if (prefix && !text.prefixStartOnly && !isString(scheme, "always"))
      return notRead("pre_tokenizer", fmt::format("'Metaspace' with prepend_scheme {}",
                                                  printable(scheme->dump(-1, ' ', true))));
  }
  // The prefix of a normalizer stands there already.
  if (prefix && !text.addSpacePrefix)
    text.addSpacePrefix = text.prefixUnlessSpace = true;
  text.spacesBecomeMarks = true;
  return Status::ok();
}

Status addByteLevel(const Json &step, TokenizerText &text) {
  STRATA_ASSIGN_OR_RETURN(bool prefix, booleanMember(step, "add_prefix_space", true));
  if (prefix && !text.patterns.empty())
    return notRead("pre_tokenizer", "'ByteLevel' with add_prefix_space behind other steps");
  text.addSpacePrefix = text.prefixUnlessSpace = prefix;
  STRATA_ASSIGN_OR_RETURN(bool usesRegex, booleanMember(step, "use_regex", true));
  if (usesRegex)
    text.addPattern(std::string(byteLevelPattern()));
  text.byteLevel = true;
  return Status::ok();
}

Status addPreTokenizer(const Json &step, const std::string &type, TokenizerText &text) {
  if (text.byteLevel)
    return notRead("pre_tokenizer", fmt::format("'{}' after 'ByteLevel'", printable(type)));
  if (type == "Split")
    return addSplit(step, text);
  if (type == "Metaspace")
    return addMetaspace(step, text);
  if (type == "ByteLevel")
    return addByteLevel(step, text);
  if (type == "Digits") {
    STRATA_ASSIGN_OR_RETURN(bool individual, booleanMember(step, "individual_digits", false));
    text.addPattern(individual ? R"(\p{N})" : R"(\p{N}+)");
    return Status::ok();
  }
  if (type == "WhitespaceSplit") {
    text.addPattern(R"(\s+)", {SplitBehavior::Removed, false});
    return Status::ok();
  }
  return notRead("pre_tokenizer", fmt::format("'{}'", printable(type)));
}

/// Words that 'WhitespaceSplit' cut and 'Metaspace' marks: the same as single spaces between them,
/// each with its mark.
bool cutsWordsAtWhiteSpace(const TokenizerText &text) {
  return text.patterns.size() == 1 && text.patterns[0] == R"(\s+)" &&
         text.uses[0].behavior == SplitBehavior::Removed && !text.uses[0].invert &&
         text.addSpacePrefix && !text.prefixStartOnly;
}

} // namespace

Result<std::vector<const Json *>> tokenizerSteps(const Json &tokenizer, std::string_view field,
                                                 std::string_view sequenceMember) {
  std::vector<const Json *> steps;
  const Json *value = findMember(tokenizer, field);
  if (!value)
    return steps;
  STRATA_ASSIGN_OR_RETURN(std::string type, stepType(*value, field));
  if (type != "Sequence") {
    steps.push_back(value);
    return steps;
  }
  const Json *list = findMember(*value, sequenceMember);
  if (!list || !list->is_array())
    return makeError(StatusCode::InvalidData,
                     "tokenizer.json: the 'Sequence' of the {} has no list '{}'", field,
                     sequenceMember);
  for (const Json &step : *list)
    steps.push_back(&step);
  return steps;
}

Result<std::string> stepType(const Json &step, std::string_view field) {
  const Json *type = findMember(step, "type");
  if (!type || !type->is_string())
    return makeError(StatusCode::InvalidData, "tokenizer.json: a step of the {} has no 'type'",
                     field);
  return type->get<std::string>();
}

Result<bool> booleanMember(const Json &object, std::string_view key, bool fallback) {
  const Json *value = findMember(object, key);
  if (!value)
    return fallback;
  if (!value->is_boolean())
    return makeError(StatusCode::InvalidData, "'{}' is {}; it must be true or false", key,
                     jsonKind(*value));
  return value->get<bool>();
}

Result<TokenizerText> readTokenizerText(const Json &tokenizer) {
  TokenizerText text;
  STRATA_ASSIGN_OR_RETURN(std::vector<const Json *> normalizers,
                          tokenizerSteps(tokenizer, "normalizer", "normalizers"));
  for (const Json *step : normalizers) {
    STRATA_ASSIGN_OR_RETURN(std::string type, stepType(*step, "normalizer"));
    STRATA_RETURN_IF_ERROR(addNormalizer(*step, type, text));
  }
  STRATA_ASSIGN_OR_RETURN(std::vector<const Json *> preTokenizers,
                          tokenizerSteps(tokenizer, "pre_tokenizer", "pretokenizers"));
  for (const Json *step : preTokenizers) {
    STRATA_ASSIGN_OR_RETURN(std::string type, stepType(*step, "pre_tokenizer"));
    STRATA_RETURN_IF_ERROR(addPreTokenizer(*step, type, text));
  }
  if (text.spacesBecomeMarks && cutsWordsAtWhiteSpace(text)) {
    text.steps.push_back({TextStep::Kind::Replace, R"(\s+)", " "});
    text.steps.push_back({TextStep::Kind::Replace, "^ | $", ""});
    text.splitAtSpaces = true;
    text.patterns.clear();
    text.uses.clear();
  }
  if (text.byteLevel && text.spacesBecomeMarks)
    return notRead("pre_tokenizer", "'ByteLevel' together with U+2581 for spaces");
  if (text.spacesBecomeMarks && !text.patterns.empty())
    return notRead("pre_tokenizer", "of patterns together with U+2581 for spaces");
  return text;
}

} // namespace strata
