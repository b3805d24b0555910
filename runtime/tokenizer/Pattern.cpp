#include "runtime/tokenizer/Pattern.h"

#include <algorithm>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "runtime/tokenizer/Utf8.h"

namespace strata {
namespace {

// PCRE2 bounds the steps from each place where a match may begin, and does not say how many it
// took. So every place has a few, which nearly all matches are found within; more are taken from
// what the text's bytes allow. Patterns of real models need a few a byte.
constexpr uint32_t stepsOfAPlace = 256;
constexpr uint64_t stepsPerByte = 500;
constexpr uint32_t matchHeapKiB = 256 * 1024;

PCRE2_SPTR bytesOf(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

std::string errorText(int code) {
  PCRE2_UCHAR buffer[128];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char *>(buffer);
}

} // namespace

void Pattern::CodeDeleter::operator()(pcre2_code *code) const { pcre2_code_free(code); }
void PatternSearch::Deleter::operator()(pcre2_match_context *context) const {
  pcre2_match_context_free(context);
}
void PatternSearch::Deleter::operator()(pcre2_match_data *data) const {
  pcre2_match_data_free(data);
}

Result<Pattern> Pattern::create(std::string_view pattern) {
  int error = 0;
  PCRE2_SIZE place = 0;
  Pattern made;
  made.code_.reset(pcre2_compile(bytesOf(pattern), pattern.size(),
                                 PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &place,
                                 nullptr));
  if (!made.code_)
    return makeError(StatusCode::InvalidData, "does not compile: {} at byte {}", errorText(error),
                     place);
  // Without JIT (none for this processor, or no executable memory) the interpreter runs.
  (void)pcre2_jit_compile(made.code_.get(), PCRE2_JIT_COMPLETE);
  return made;
}

Result<PatternSearch> PatternSearch::create(size_t textBytes) {
  PatternSearch search;
  search.context_.reset(pcre2_match_context_create(nullptr));
  search.data_.reset(pcre2_match_data_create(1, nullptr));
  if (!search.context_ || !search.data_)
    return makeError(StatusCode::ResourceExhausted, "no memory to match a pattern in {} bytes",
                     textBytes);
  pcre2_set_heap_limit(search.context_.get(), matchHeapKiB);
  search.textBytes_ = textBytes;
  search.stepsLeft_ = stepsPerByte * textBytes;
  return search;
}

int PatternSearch::run(const Pattern &pattern, std::string_view subject, size_t from,
                       uint32_t options, uint32_t steps) {
  pcre2_set_match_limit(context_.get(), steps);
  auto match = [&](uint32_t more) {
    return pcre2_match(pattern.code_.get(), bytesOf(subject), subject.size(), from,
                       PCRE2_NO_UTF_CHECK | options | more, data_.get(), context_.get());
  };
  int found = match(0);
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) // the interpreter keeps its stack on the heap
    found = match(PCRE2_NO_JIT);
  return found;
}

Result<std::optional<PatternSearch::Match>>
PatternSearch::find(const Pattern &pattern, std::string_view subject, size_t from) {
  int found;
  for (;;) {
    found = run(pattern, subject, from, 0, stepsOfAPlace);
    if (found != PCRE2_ERROR_MATCHLIMIT)
      break;
    // To the place that needs more.
    auto next = [&] {
      from += from < subject.size() ? readUtf8(subject.substr(from, 4)).length : 1;
    };
    do
      found = run(pattern, subject, from, PCRE2_ANCHORED, stepsOfAPlace);
    while (found == PCRE2_ERROR_NOMATCH && (next(), from <= subject.size()));
    for (uint64_t steps = stepsOfAPlace; found == PCRE2_ERROR_MATCHLIMIT;) {
      steps = std::min<uint64_t>(2 * steps, UINT32_MAX);
      if (steps > stepsLeft_)
        return makeError(StatusCode::InvalidData,
                         "takes more steps than the {} that {} bytes of text allow",
                         stepsPerByte * textBytes_, textBytes_);
      stepsLeft_ -= steps;
      found = run(pattern, subject, from, PCRE2_ANCHORED, uint32_t(steps));
    }
    if (found != PCRE2_ERROR_NOMATCH || from >= subject.size())
      break;
    next();
  }
  if (found == PCRE2_ERROR_NOMATCH)
    return std::optional<Match>();
  if (found < 0)
    return makeError(StatusCode::InvalidData, "fails on {} bytes at byte {}: {}", subject.size(),
                     from, errorText(found));
  const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(data_.get());
  return std::optional(Match{bounds[0], bounds[1]});
}

} // namespace strata
