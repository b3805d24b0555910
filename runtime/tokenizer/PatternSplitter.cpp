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

/// A run of valid UTF-8, or of other bytes.
struct Run {
  size_t end;
  bool valid;
};

std::vector<Run> runsOfValidity(std::string_view text) {
  std::vector<Run> runs;
  for (size_t i = 0; i < text.size();) {
    Utf8Sequence sequence = readUtf8(text.substr(i, 4));
    bool valid = sequence.kind == Utf8Sequence::Character;
    i += sequence.length;
    if (runs.empty() || runs.back().valid != valid)
      runs.push_back({i, valid});
    else
      runs.back().end = i;
  }
  return runs;
}

/// A match of a pattern, or a gap between two.
struct Part {
  size_t end;
  bool isMatch;
};

/// What a pattern's use makes of a piece that was cut into `parts`.
void arrange(const std::vector<Part> &parts, PatternUse use, size_t begin,
             std::vector<PatternSplitter::Piece> &pieces) {
  size_t first = pieces.size();
  bool formerMatched = false;
  for (const Part &part : parts) {
    bool matched = part.isMatch != use.invert;
    bool joins = false;
    switch (use.behavior) {
    case SplitBehavior::Isolated:
    case SplitBehavior::Removed:
      break;
    case SplitBehavior::MergedWithPrevious:
      joins = matched && !formerMatched;
      break;
    case SplitBehavior::MergedWithNext:
      joins = !matched && formerMatched;
      break;
    case SplitBehavior::Contiguous:
      joins = matched == formerMatched;
      break;
    }
    if (joins && pieces.size() > first)
      pieces.back().end = part.end;
    else if (!matched || use.behavior != SplitBehavior::Removed)
      pieces.push_back({begin, part.end});
    formerMatched = matched;
    begin = part.end;
  }
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
  if (!preTokenizer.uses.empty() && preTokenizer.uses.size() != preTokenizer.patterns.size())
    return makeError(StatusCode::InvalidData,
                     "pre-tokeniser '{}' has {} patterns but {} uses; each has one, or none has",
                     preTokenizer.name, preTokenizer.patterns.size(), preTokenizer.uses.size());
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

Status PatternSplitter::splitPiece(size_t pattern, std::string_view text, Piece piece, void *match,
                                   std::vector<Piece> &pieces) const {
  auto *data = static_cast<pcre2_match_data *>(match);
  // The piece is the whole subject: its ends are the text's ends to look-around.
  std::string_view subject = text.substr(piece.begin, piece.end - piece.begin);
  std::vector<Part> parts;
  size_t last = 0; // the end of the last part
  auto cutAt = [&](size_t place, bool isMatch) {
    if (place > last)
      parts.push_back({piece.begin + place, isMatch});
    last = place;
  };
  for (size_t from = 0; from < subject.size();) {
    auto run = [&](uint32_t options) {
      return pcre2_match(codes_[pattern].get(), reinterpret_cast<PCRE2_SPTR>(subject.data()),
                         subject.size(), from, PCRE2_NO_UTF_CHECK | options, data, context_.get());
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
          pattern + 1, preTokenizer_.name, subject.size(), piece.begin + from, errorText(found));
    const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(data);
    // Before PCRE2 10.38, \K in look-around could place the bounds backwards or behind the search.
    size_t matchBegin = std::max(bounds[0], last), matchEnd = std::max(bounds[1], matchBegin);
    cutAt(matchBegin, false);
    cutAt(matchEnd, true);
    from = matchEnd;
    // An empty match cuts; the search goes on one character further.
    if (matchBegin == matchEnd && from < subject.size())
      from += readUtf8(subject.substr(from, 4)).length;
  }
  cutAt(subject.size(), false);
  arrange(parts, preTokenizer_.uses.empty() ? PatternUse() : preTokenizer_.uses[pattern],
          piece.begin, pieces);
  return Status::ok();
}

Result<std::vector<PatternSplitter::Piece>> PatternSplitter::split(std::string_view text) const {
  std::vector<Run> runs = runsOfValidity(text);
  std::vector<Piece> pieces, next;
  size_t begin = 0;
  for (const Run &run : runs) {
    pieces.push_back({begin, run.end});
    begin = run.end;
  }
  for (size_t pattern = 0; pattern < codes_.size(); ++pattern) {
    std::unique_ptr<pcre2_match_data, MatchDataDeleter> data(pcre2_match_data_create(1, nullptr));
    if (!data)
      return makeError(StatusCode::ResourceExhausted, "no memory for the pre-tokeniser's match");
    next.clear();
    size_t run = 0;
    for (const Piece &piece : pieces) {
      while (runs[run].end <= piece.begin)
        ++run;
      if (runs[run].valid)
        STRATA_RETURN_IF_ERROR(splitPiece(pattern, text, piece, data.get(), next));
      else
        next.push_back(piece);
    }
    pieces.swap(next);
  }
  return pieces;
}

} // namespace strata
