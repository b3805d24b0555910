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

/// SentencePiece's two: a mark in front, and marks for spaces.
Status addNormalizer(const Json &step, const std::string &type, TokenizerText &text) {
  if (type == "Prepend") {
    if (!isString(findMember(step, "prepend"), spaceMark))
      return notRead("normalizer", "'Prepend' of another text than U+2581");
    text.addSpacePrefix = true;
    return Status::ok();
  }
  if (type == "Replace") {
    const Json *pattern = findMember(step, "pattern");
    if (!pattern || !isString(findMember(*pattern, "String"), " ") ||
        !isString(findMember(step, "content"), spaceMark))
      return notRead("normalizer", "'Replace' of anything but a space by U+2581");
    text.spacesBecomeMarks = true;
    return Status::ok();
  }
  return notRead("normalizer", fmt::format("'{}'", printable(type)));
}

Status addSplit(const Json &step, TokenizerText &text) {
  const Json *pattern = findMember(step, "pattern");
  const Json *regex = pattern ? findMember(*pattern, "Regex") : nullptr;
  const Json *literal = pattern ? findMember(*pattern, "String") : nullptr;
  // A normalizer has left no space to split at.
  if (isString(literal, " ") && text.spacesBecomeMarks)
    return Status::ok();
  if (!isString(findMember(step, "behavior"), "Isolated")) {
    const Json *behavior = findMember(step, "behavior");
    return notRead("pre_tokenizer",
                   fmt::format("'Split' with behavior {}",
                               behavior ? printable(behavior->dump(-1, ' ', true)) : "missing"));
  }
  // With every piece isolated, an inverted match cuts at the same places.
  const Json *source = regex ? regex : literal;
  if (!source || !source->is_string())
    return makeError(StatusCode::InvalidData,
                     "tokenizer.json: a 'Split' of the pre_tokenizer has neither a 'Regex' nor a "
                     "'String' pattern");
  const auto &sourceText = source->get_ref<const std::string &>();
  text.patterns.push_back(regex ? sourceText : escapeLiteral(sourceText));
  return Status::ok();
}

Status addMetaspace(const Json &step, TokenizerText &text) {
  if (!isString(findMember(step, "replacement"), spaceMark))
    return notRead("pre_tokenizer", "'Metaspace' with another replacement than U+2581");
  STRATA_ASSIGN_OR_RETURN(bool splits, booleanMember(step, "split", true));
  if (splits)
    return notRead("pre_tokenizer", "'Metaspace' that splits the text at spaces");
  text.spacesBecomeMarks = true;
  if (const Json *scheme = findMember(step, "prepend_scheme")) {
    if (isString(scheme, "always"))
      text.addSpacePrefix = true;
    else if (!isString(scheme, "never"))
      return notRead("pre_tokenizer", fmt::format("'Metaspace' with prepend_scheme {}",
                                                  printable(scheme->dump(-1, ' ', true))));
    return Status::ok();
  }
  STRATA_ASSIGN_OR_RETURN(bool prefix, booleanMember(step, "add_prefix_space", true));
  text.addSpacePrefix = text.addSpacePrefix || prefix;
  return Status::ok();
}

Status addByteLevel(const Json &step, TokenizerText &text) {
  STRATA_ASSIGN_OR_RETURN(bool prefix, booleanMember(step, "add_prefix_space", true));
  if (prefix)
    return notRead("pre_tokenizer", "'ByteLevel' with add_prefix_space");
  STRATA_ASSIGN_OR_RETURN(bool usesRegex, booleanMember(step, "use_regex", true));
  if (usesRegex)
    text.patterns.emplace_back(byteLevelPattern());
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
    text.patterns.emplace_back(individual ? R"(\p{N})" : R"(\p{N}+)");
    return Status::ok();
  }
  return notRead("pre_tokenizer", fmt::format("'{}'", printable(type)));
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
  if (text.byteLevel && (!normalizers.empty() || text.spacesBecomeMarks))
    return notRead("pre_tokenizer", "'ByteLevel' together with U+2581 for spaces");
  if (text.spacesBecomeMarks && !text.patterns.empty())
    return notRead("pre_tokenizer", "of patterns together with U+2581 for spaces");
  return text;
}

} // namespace strata
