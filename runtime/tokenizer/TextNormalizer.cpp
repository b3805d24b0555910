#include "runtime/tokenizer/TextNormalizer.h"

#include <algorithm>

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>

#include "runtime/tokenizer/CharacterClasses.h"
#include "runtime/tokenizer/Utf8.h"

namespace strata {
namespace {

constexpr size_t maxNormalizedBytes = size_t(1) << 30;

const icu::Normalizer2 *unicodeForm(TextStep::Kind kind, UErrorCode &error) {
  switch (kind) {
  case TextStep::Kind::Nfc:
    return icu::Normalizer2::getNFCInstance(error);
  case TextStep::Kind::Nfd:
    return icu::Normalizer2::getNFDInstance(error);
  case TextStep::Kind::Nfkc:
    return icu::Normalizer2::getNFKCInstance(error);
  default:
    return icu::Normalizer2::getNFKDInstance(error);
  }
}

Result<std::string> normalizeForm(TextStep::Kind kind, std::string_view text) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2 *form = unicodeForm(kind, error);
  std::string out;
  if (U_SUCCESS(error)) {
    icu::StringByteSink<std::string> sink(&out, int32_t(text.size()));
    form->normalizeUTF8(0, icu::StringPiece(text.data(), int32_t(text.size())), sink, nullptr,
                        error);
  }
  if (U_FAILURE(error))
    return makeError(StatusCode::Internal, "Unicode normalisation of {} bytes fails: {}",
                     text.size(), u_errorName(error));
  return out;
}

void appendCharacter(UChar32 character, std::string &out) {
  uint8_t bytes[4];
  int32_t length = 0;
  U8_APPEND_UNSAFE(bytes, length, character);
  out.append(reinterpret_cast<const char *>(bytes), size_t(length));
}

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    Utf8Sequence sequence = readUtf8(text.substr(0, 4));
    if (sequence.codePoint == 0x130) // the only character whose lower case is two
      out += "i\u0307";
    else
      appendCharacter(u_tolower(UChar32(sequence.codePoint)), out);
    text.remove_prefix(sequence.length);
  }
  return out;
}

} // namespace

Result<TextNormalizer> TextNormalizer::create(const std::vector<TextStep> &steps) {
  TextNormalizer normalizer;
  for (size_t i = 0; i < steps.size(); ++i) {
    const TextStep &step = steps[i];
    if (step.kind > TextStep::Kind::CharacterMap)
      return makeError(StatusCode::InvalidData, "text step {} is of kind {}; 0 to {} are known", i,
                       int(step.kind), int(TextStep::Kind::CharacterMap));
    Step made{step.kind, {}, std::nullopt, std::nullopt};
    if (step.kind == TextStep::Kind::CharacterMap) {
      STRATA_ASSIGN_OR_RETURN(made.map, CharacterMap::create(step.content));
    } else {
      made.content = step.content;
    }
    if (step.kind == TextStep::Kind::Replace) {
      Result<Pattern> pattern = Pattern::create(step.pattern);
      if (!pattern.isOk())
        return makeError(pattern.status().code(), "the pattern of text step {} of {} {}", i + 1,
                         steps.size(), pattern.status().message());
      made.pattern = std::move(*pattern);
    }
    normalizer.steps_.push_back(std::move(made));
  }
  return normalizer;
}

Result<std::string> TextNormalizer::replaceAll(const Step &step, std::string_view text) {
  STRATA_ASSIGN_OR_RETURN(PatternSearch search, PatternSearch::create(text.size()));
  std::string out;
  size_t copied = 0;
  bool formerWasText = false; // an empty match just behind another is none
  for (size_t from = 0; from <= text.size();) {
    Result<std::optional<PatternSearch::Match>> found = search.find(*step.pattern, text, from);
    if (!found.isOk())
      return makeError(found.status().code(), "a pattern of the normaliser {}",
                       found.status().message());
    if (!*found)
      break;
    size_t begin = std::max((*found)->begin, copied), end = std::max((*found)->end, begin);
    out.append(text.substr(copied, begin - copied));
    if (begin < end || begin > copied || !formerWasText)
      out += step.content;
    formerWasText = begin < end;
    copied = from = end;
    if (begin == end)
      from += from < text.size() ? readUtf8(text.substr(from, 4)).length : 1;
    if (out.size() > maxNormalizedBytes)
      return makeError(StatusCode::ResourceExhausted,
                       "{} bytes become more than {} when normalised; encode them in parts",
                       text.size(), maxNormalizedBytes);
  }
  return out.append(text.substr(copied));
}

Result<std::string> TextNormalizer::applyStep(const Step &step, std::string text) {
  switch (step.kind) {
  case TextStep::Kind::Nfc:
  case TextStep::Kind::Nfd:
  case TextStep::Kind::Nfkc:
  case TextStep::Kind::Nfkd:
    return normalizeForm(step.kind, text);
  case TextStep::Kind::Lowercase:
    return lowercase(text);
  case TextStep::Kind::Replace:
    return replaceAll(step, text);
  case TextStep::Kind::Prepend:
    return text.empty() ? text : step.content + text;
  case TextStep::Kind::StripLeft:
    return text.substr(leadingWhiteSpace(text));
  case TextStep::Kind::StripRight:
    return text.substr(0, withoutTrailingWhiteSpace(text));
  case TextStep::Kind::CharacterMap:
    break;
  }
  return step.map->apply(text, maxNormalizedBytes);
}

Result<std::string> TextNormalizer::apply(std::string_view text) const {
  std::string out;
  while (!text.empty()) {
    size_t valid = 0, other = 0;
    while (valid < text.size()) {
      Utf8Sequence sequence = readUtf8(text.substr(valid, 4));
      if (sequence.kind != Utf8Sequence::Character) {
        other = sequence.length;
        break;
      }
      valid += sequence.length;
    }
    std::string run(text.substr(0, valid));
    for (const Step &step : steps_) {
      STRATA_ASSIGN_OR_RETURN(run, applyStep(step, std::move(run)));
      // Also keeps within the 32 bits in which ICU counts.
      if (run.size() > maxNormalizedBytes)
        return makeError(StatusCode::ResourceExhausted,
                         "{} bytes become {} when normalised, more than {}; encode them in parts",
                         valid, run.size(), maxNormalizedBytes);
    }
    out.append(run).append(text.substr(valid, other));
    text.remove_prefix(valid + other);
  }
  return out;
}

} // namespace strata
