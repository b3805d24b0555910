#include "runtime/tokenizer/PatternSplitter.h"

#include <algorithm>

#include "runtime/tokenizer/Utf8.h"

namespace strata {
namespace {

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
    Result<Pattern> pattern = Pattern::create(preTokenizer.patterns[i]);
    if (!pattern.isOk())
      return makeError(pattern.status().code(), "pattern {} of {} of pre-tokeniser '{}' {}", i + 1,
                       preTokenizer.patterns.size(), preTokenizer.name, pattern.status().message());
    splitter.patterns_.push_back(std::move(*pattern));
  }
  splitter.preTokenizer_ = std::move(preTokenizer);
  return splitter;
}

Status PatternSplitter::splitPiece(size_t pattern, std::string_view text, Piece piece,
                                   PatternSearch &search, std::vector<Piece> &pieces) const {
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
    Result<std::optional<PatternSearch::Match>> found =
        search.find(patterns_[pattern], subject, from);
    if (!found.isOk())
      return makeError(found.status().code(),
                       "pattern {} of pre-tokeniser '{}' {}, in a piece at "
                       "byte {}",
                       pattern + 1, preTokenizer_.name, found.status().message(), piece.begin);
    if (!*found)
      break;
    auto [begin, end] = **found;
    // Before PCRE2 10.38, \K in look-around could place the bounds backwards or behind the search.
    size_t matchBegin = std::max(begin, last), matchEnd = std::max(end, matchBegin);
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
  STRATA_ASSIGN_OR_RETURN(PatternSearch search, PatternSearch::create(text.size()));
  std::vector<Run> runs = runsOfValidity(text);
  std::vector<Piece> pieces, next;
  size_t begin = 0;
  for (const Run &run : runs) {
    pieces.push_back({begin, run.end});
    begin = run.end;
  }
  for (size_t pattern = 0; pattern < patterns_.size(); ++pattern) {
    next.clear();
    size_t run = 0;
    for (const Piece &piece : pieces) {
      while (runs[run].end <= piece.begin)
        ++run;
      if (runs[run].valid)
        STRATA_RETURN_IF_ERROR(splitPiece(pattern, text, piece, search, next));
      else
        next.push_back(piece);
    }
    pieces.swap(next);
  }
  return pieces;
}

} // namespace strata
