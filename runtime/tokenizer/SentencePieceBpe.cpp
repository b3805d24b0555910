// SentencePiece BPE: merge characters into whatever the vocabulary holds, best score first; what no
// token covers is written byte by byte.
#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <unordered_map>

#include <fmt/ranges.h>

#include "runtime/tokenizer/CommonTokenizer.h"
#include "runtime/tokenizer/PairMerging.h"
#include "runtime/tokenizer/SentencePieceText.h"
#include "runtime/tokenizer/TextTable.h"
#include "runtime/tokenizer/Utf8.h"

namespace strata {
namespace {

std::span<const uint8_t> bytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

/// Scores in the order of merging: the highest score becomes the least number.
uint32_t priorityOf(float score) {
  auto bits = std::bit_cast<uint32_t>(score + 0.0f); // -0 equals 0
  uint32_t ascending = bits >> 31 ? ~bits : bits | 0x80000000u;
  return ~ascending;
}

/// True where a space stands behind another character within the token.
bool holdsInnerSpace(std::string_view text) {
  while (text.starts_with(spaceMark))
    text.remove_prefix(spaceMark.size());
  return text.find(spaceMark) != std::string_view::npos;
}

struct TextOfToken {
  const std::vector<std::string> *tokens;
  std::string_view operator()(int32_t id) const { return (*tokens)[id]; }
};

class SentencePieceBpe final : public CommonTokenizer {
public:
  explicit SentencePieceBpe(Vocabulary vocabulary)
      : CommonTokenizer(std::move(vocabulary)),
        table_(TextOfToken{&vocabulary_.tokens}, vocabulary_.tokens.size()) {}

  Status build();

private:
  /// How an unused token was last made, so that it can be taken apart: its text to the bytes of the
  /// left part.
  using Splits = std::unordered_map<std::string_view, uint32_t>;

  Status encodeText(std::string_view text, bool starts, std::vector<int32_t> &ids) const override;
  std::string textOf(int32_t id) const override;

  Status encodeSpan(std::string_view span, PairMerging &merging, std::vector<int32_t> &ids) const;
  Status emit(std::string_view text, const Splits &splits, std::vector<int32_t> &ids) const;

  int32_t find(std::string_view text) const {
    return text.size() <= longestToken_ ? table_.find(text) : -1;
  }

  TextTable<TextOfToken> table_;
  std::array<int32_t, 256> byteIds_;
  size_t longestToken_ = 0;
  bool hasUnused_ = false;
  /// No token has a space behind another character, so nothing is ever merged across the front of a
  /// space and words can be merged one by one.
  bool spacesOpenTokens_ = true;
};

Status SentencePieceBpe::build() {
  STRATA_ASSIGN_OR_RETURN(byteIds_, byteTokens(vocabulary_));
  for (int32_t id : mergeableIds(vocabulary_)) {
    const std::string &text = vocabulary_.tokens[id];
    table_.insert(id);
    longestToken_ = std::max(longestToken_, text.size());
    hasUnused_ |= vocabulary_.kinds[id] == TokenKind::Unused;
    spacesOpenTokens_ = spacesOpenTokens_ && !holdsInnerSpace(text);
  }
  return Status::ok();
}

std::string SentencePieceBpe::textOf(int32_t id) const {
  const std::string &text = vocabulary_.tokens[id];
  if (vocabulary_.kinds[id] == TokenKind::Byte)
    return std::string(1, char(byteOfToken(text)));
  return unescapeSpaces(text);
}

/// Appends the ids of one merged symbol.
Status SentencePieceBpe::emit(std::string_view text, const Splits &splits,
                              std::vector<int32_t> &ids) const {
  std::vector<std::string_view> parts{text};
  while (!parts.empty()) {
    std::string_view part = parts.back();
    parts.pop_back();
    int32_t id = find(part);
    if (id >= 0 && vocabulary_.kinds[id] != TokenKind::Unused) {
      ids.push_back(id);
      continue;
    }
    if (auto split = splits.find(part); split != splits.end()) {
      parts.push_back(part.substr(split->second));
      parts.push_back(part.substr(0, split->second));
      continue;
    }
    bool covered =
        std::all_of(part.begin(), part.end(), [&](char c) { return byteIds_[uint8_t(c)] >= 0; });
    if (!covered && vocabulary_.unknownId < 0)
      return makeError(
          StatusCode::InvalidArgument,
          "no token of the vocabulary of {} covers '{}' (bytes {:02X}); it lacks the byte "
          "tokens '<0xXX>' for them and an unknown token",
          vocabulary_.tokens.size(), part, fmt::join(bytesOf(part), " "));
    if (covered)
      for (char c : part)
        ids.push_back(byteIds_[uint8_t(c)]);
    else
      ids.push_back(vocabulary_.unknownId);
  }
  return Status::ok();
}

Status SentencePieceBpe::encodeSpan(std::string_view span, PairMerging &merging,
                                    std::vector<int32_t> &ids) const {
  merging.symbols.clear();
  for (size_t i = 0; i < span.size();) {
    merging.symbols.push_back({uint32_t(i), -1});
    Utf8Sequence sequence = readUtf8(span.substr(i, 4));
    i += sequence.kind == Utf8Sequence::Character ? sequence.length : 1;
  }
  auto textBetween = [&](uint32_t begin, uint32_t end) { return span.substr(begin, end - begin); };
  Splits splits;
  auto end = uint32_t(span.size());
  merging.run(
      end,
      [&](const MergeSymbol &left, const MergeSymbol &, uint32_t pairEnd) -> PairMerge {
        int32_t id = find(textBetween(left.begin, pairEnd));
        if (id < 0)
          return {};
        return {priorityOf(vocabulary_.scores[id]), id};
      },
      [&](const MergeSymbol &left, const MergeSymbol &right, uint32_t pairEnd) {
        if (hasUnused_ && vocabulary_.kinds[left.pair.id] == TokenKind::Unused)
          splits[textBetween(left.begin, pairEnd)] = right.begin - left.begin;
      });
  Status status;
  merging.forEach(end, [&](const MergeSymbol &symbol, uint32_t symbolEnd) {
    if (!status.isOk())
      return;
    if (symbol.id >= 0 && vocabulary_.kinds[symbol.id] != TokenKind::Unused)
      ids.push_back(symbol.id);
    else
      status = emit(textBetween(symbol.begin, symbolEnd), splits, ids);
  });
  return status;
}

Status SentencePieceBpe::encodeText(std::string_view text, bool starts,
                                    std::vector<int32_t> &ids) const {
  std::string marked = markSpaces(vocabulary_, text, starts);
  PairMerging merging;
  std::string_view rest = marked;
  while (!rest.empty()) {
    size_t end = rest.size();
    if (vocabulary_.splitAtSpaces) {
      end = std::min(end, rest.find(spaceMark, 1));
    } else if (spacesOpenTokens_) {
      size_t spaces = 0;
      while (rest.substr(spaces).starts_with(spaceMark))
        spaces += spaceMark.size();
      end = std::min(end, rest.find(spaceMark, spaces));
    }
    STRATA_RETURN_IF_ERROR(encodeSpan(rest.substr(0, end), merging, ids));
    rest.remove_prefix(end);
  }
  return Status::ok();
}

} // namespace

Result<std::unique_ptr<Tokenizer>> createSentencePieceBpe(Vocabulary vocabulary) {
  auto tokenizer = std::make_unique<SentencePieceBpe>(std::move(vocabulary));
  STRATA_RETURN_IF_ERROR(tokenizer->prepare());
  STRATA_RETURN_IF_ERROR(tokenizer->build());
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

} // namespace strata
