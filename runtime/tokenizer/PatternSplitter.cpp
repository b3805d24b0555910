#include "runtime/tokenizer/PatternSplitter.h"

#include <algorithm>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "runtime/tokenizer/Utf8.h"

namespace strata {
namespace {

// Limits of one match. A pattern of a real model needs a few steps a byte; one that needs more than
// this on a piece of text is refused instead of holding the server.
constexpr uint32_t matchSteps = 50'000'000;
constexpr uint32_t matchHeapKiB = 256 * 1024;

std::string errorText(int code) {
  PCRE2_UCHAR buffer[128];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char *>(buffer);
}

struct MatchDataDeleter {
  void operator()(pcre2_match_data *data) const { pcre2_match_data_free(data); }
};

/// Cuts `text` between valid UTF-8 and other bytes. An odd entry (counted from 0) ends a run of
/// other bytes, an even one a run of valid UTF-8, which may be empty.
std::vector<size_t> runsOfValidity(std::string_view text) {
  std::vector<size_t> ends;
  bool valid = true;
  for (size_t i = 0; i < text.size();) {
    Utf8Sequence sequence = readUtf8(text.substr(i, 4));
    if ((sequence.kind == Utf8Sequence::Character) != valid) {
      ends.push_back(i);
      valid = !valid;
    }
    i += sequence.length;
  }
  ends.push_back(text.size());
  return ends;
}

} // namespace

void PatternSplitter::CodeDeleter::operator()(pcre2_code *code) const { pcre2_code_free(code); }
void PatternSplitter::ContextDeleter::operator()(pcre2_match_context *context) const {
  pcre2_match_context_free(context);
}

Result<PatternSplitter> PatternSplitter::create(PreTokenizer preTokenizer) {
  if (preTokenizer.patterns.empty())
    return makeError(StatusCode::Unimplemented,
                     "pre-tokeniser '{}' is not known: it has no patterns; byte-level BPE needs at "
                     "least one",
                     preTokenizer.name);
  PatternSplitter splitter;
  for (size_t i = 0; i < preTokenizer.patterns.size(); ++i) {
    const std::string &pattern = preTokenizer.patterns[i];
    int error = 0;
    PCRE2_SIZE place = 0;
    Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                            PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &place,
                            nullptr));
    if (!code)
      return makeError(StatusCode::InvalidData,
                       "pattern {} of {} of pre-tokeniser '{}' does not compile: {} at byte {}",
                       i + 1, preTokenizer.patterns.size(), preTokenizer.name, errorText(error),
                       place);
    // Without JIT (none for this processor, or no executable memory) the interpreter runs.
    (void)pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
    splitter.codes_.push_back(std::move(code));
  }
  splitter.context_.reset(pcre2_match_context_create(nullptr));
  if (!splitter.context_)
    return makeError(StatusCode::ResourceExhausted, "no memory for the pre-tokeniser's context");
  pcre2_set_match_limit(splitter.context_.get(), matchSteps);
  pcre2_set_heap_limit(splitter.context_.get(), matchHeapKiB);
  splitter.preTokenizer_ = std::move(preTokenizer);
  return splitter;
}

Status PatternSplitter::splitPiece(size_t pattern, std::string_view text, size_t begin, size_t end,
                                   void *match, std::vector<size_t> &ends) const {
  auto *data = static_cast<pcre2_match_data *>(match);
  // The piece is the whole subject: its ends are the text's ends to look-around.
  std::string_view piece = text.substr(begin, end - begin);
  auto subject = reinterpret_cast<PCRE2_SPTR>(piece.data());
  size_t last = 0; // the end of the last cut
  auto cutAt = [&](size_t place) {
    if (place > last)
      ends.push_back(begin + place);
    last = place;
  };
  for (size_t from = 0; from < piece.size();) {
    auto run = [&](uint32_t options) {
      return pcre2_match(codes_[pattern].get(), subject, piece.size(), from,
                         PCRE2_NO_UTF_CHECK | options, data, context_.get());
    };
    int found = run(0);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) // the interpreter keeps its stack on the heap
      found = run(PCRE2_NO_JIT);
    if (found == PCRE2_ERROR_NOMATCH)
      break;
    if (found < 0)
      return makeError(
          StatusCode::InvalidData,
          "pattern {} of pre-tokeniser '{}' fails on a piece of {} bytes at byte {}: {}",
          pattern + 1, preTokenizer_.name, piece.size(), begin + from, errorText(found));
    const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(data);
    // Before PCRE2 10.38, \K in look-around could place the bounds backwards or behind the search.
    size_t matchBegin = std::max(bounds[0], last), matchEnd = std::max(bounds[1], matchBegin);
    cutAt(matchBegin);
    cutAt(matchEnd);
    from = matchEnd;
    // An empty match cuts; the search goes on one character further.
    if (matchBegin == matchEnd && from < piece.size())
      from += readUtf8(piece.substr(from, 4)).length;
  }
  cutAt(piece.size());
  return Status::ok();
}

Result<std::vector<size_t>> PatternSplitter::split(std::string_view text) const {
  std::vector<size_t> runs = runsOfValidity(text), ends, next;
  for (size_t end : runs)
    if (end > 0)
      ends.push_back(end);
  // Only the first run can be empty, so every run but that one is a piece now.
  for (size_t pattern = 0; pattern < codes_.size(); ++pattern) {
    std::unique_ptr<pcre2_match_data, MatchDataDeleter> data(pcre2_match_data_create(1, nullptr));
    if (!data)
      return makeError(StatusCode::ResourceExhausted, "no memory for the pre-tokeniser's match");
    next.clear();
    size_t begin = 0, run = 0;
    for (size_t end : ends) {
      while (runs[run] <= begin)
        ++run;
      if (run % 2 == 1)
        next.push_back(end);
      else
        STRATA_RETURN_IF_ERROR(splitPiece(pattern, text, begin, end, data.get(), next));
      begin = end;
    }
    ends.swap(next);
  }
  return ends;
}

} // namespace strata
