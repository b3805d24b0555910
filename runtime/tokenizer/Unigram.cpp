// SentencePiece's unigram model: of all ways to cut a text into tokens, the one whose scores have
// the largest sum (Viterbi).
#include <algorithm>
#include <array>
#include <limits>

#include "runtime/tokenizer/CommonTokenizer.h"
#include "runtime/tokenizer/SentencePieceText.h"
#include "runtime/tokenizer/TextTable.h"
#include "runtime/tokenizer/Utf8.h"

namespace strata {
namespace {

// What a character that no token covers costs, below the least score: SentencePiece's number.
constexpr double unknownPenalty = 10;

struct TextOfToken {
  const std::vector<std::string> *tokens;
  std::string_view operator()(int32_t id) const { return (*tokens)[id]; }
};

class Unigram final : public CommonTokenizer {
public:
  explicit Unigram(Vocabulary vocabulary)
      : CommonTokenizer(std::move(vocabulary)),
        table_(TextOfToken{&vocabulary_.tokens}, vocabulary_.tokens.size()) {}

  Status build();

private:
  /// The best way to reach a place in the text: by token `id` (-1: an unknown character) from
  /// `begin`.
  struct Node {
    double score = -std::numeric_limits<double>::infinity();
    uint32_t begin = 0;
    int32_t id = -1;
  };

  Status encodeText(std::string_view text, bool starts, std::vector<int32_t> &ids) const override;
  std::string textOf(int32_t id) const override;
  Status encodeSpan(std::string_view span, std::vector<Node> &nodes,
                    std::vector<int32_t> &ids) const;
  Status emitUnknown(std::string_view text, std::vector<int32_t> &ids) const;

  TextTable<TextOfToken> table_;
  /// Whether tokens of a length (in bytes) exist that begin with a byte: rules out nearly all.
  std::array<std::vector<uint32_t>, 256> lengthsByFirstByte_;
  std::array<int32_t, 256> byteIds_;
  double unknownScore_ = 0;
};

Status Unigram::build() {
  STRATA_ASSIGN_OR_RETURN(byteIds_, byteTokens(vocabulary_));
  double least = std::numeric_limits<double>::infinity();
  for (int32_t id : mergeableIds(vocabulary_)) {
    const std::string &text = vocabulary_.tokens[id];
    table_.insert(id);
    if (!text.empty())
      lengthsByFirstByte_[uint8_t(text[0])].push_back(uint32_t(text.size()));
    if (vocabulary_.kinds[id] == TokenKind::Normal)
      least = std::min(least, double(vocabulary_.scores[id]));
  }
  for (auto &lengths : lengthsByFirstByte_) {
    std::sort(lengths.begin(), lengths.end());
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  }
  unknownScore_ = (least < std::numeric_limits<double>::infinity() ? least : 0) - unknownPenalty;
  return Status::ok();
}

std::string Unigram::textOf(int32_t id) const {
  const std::string &text = vocabulary_.tokens[id];
  if (vocabulary_.kinds[id] == TokenKind::Byte)
    return std::string(1, char(byteOfToken(text)));
  return unescapeSpaces(text);
}

Status Unigram::emitUnknown(std::string_view text, std::vector<int32_t> &ids) const {
  bool covered =
      std::all_of(text.begin(), text.end(), [&](char c) { return byteIds_[uint8_t(c)] >= 0; });
  if (covered)
    for (char c : text)
      ids.push_back(byteIds_[uint8_t(c)]);
  else if (vocabulary_.unknownId >= 0)
    ids.push_back(vocabulary_.unknownId);
  else
    return makeError(StatusCode::InvalidArgument,
                     "no token of the vocabulary of {} covers {} bytes of the text, and it has no "
                     "unknown token",
                     vocabulary_.tokens.size(), text.size());
  return Status::ok();
}

Status Unigram::encodeSpan(std::string_view span, std::vector<Node> &nodes,
                           std::vector<int32_t> &ids) const {
  nodes.assign(span.size() + 1, {});
  nodes[0].score = 0;
  for (size_t begin = 0; begin < span.size();) {
    Utf8Sequence sequence = readUtf8(span.substr(begin, 4));
    size_t width = sequence.kind == Utf8Sequence::Character ? sequence.length : 1;
    double score = nodes[begin].score;
    auto reach = [&](size_t end, int32_t id, double tokenScore) {
      if (score + tokenScore > nodes[end].score)
        nodes[end] = {score + tokenScore, uint32_t(begin), id};
    };
    bool hasSingle = false;
    for (uint32_t length : lengthsByFirstByte_[uint8_t(span[begin])]) {
      if (length > span.size() - begin)
        break;
      int32_t id = table_.find(span.substr(begin, length));
      if (id < 0)
        continue;
      reach(begin + length, id,
            vocabulary_.kinds[id] == TokenKind::UserDefined ? 0.0 : vocabulary_.scores[id]);
      hasSingle |= length == width;
    }
    if (!hasSingle)
      reach(begin + width, -1, unknownScore_);
    // Places inside a character, which only a token of broken UTF-8 reaches, are left out.
    begin += width;
  }

  std::vector<size_t> ends; // of the best cut's tokens, from the last
  for (size_t end = span.size(); end > 0; end = nodes[end].begin)
    ends.push_back(end);
  for (size_t i = ends.size(); i-- > 0;) {
    const Node &node = nodes[ends[i]];
    if (node.id >= 0) {
      ids.push_back(node.id);
      continue;
    }
    // Unknown characters side by side are one unknown text.
    while (i > 0 && nodes[ends[i - 1]].id < 0)
      --i;
    STRATA_RETURN_IF_ERROR(emitUnknown(span.substr(node.begin, ends[i] - node.begin), ids));
  }
  return Status::ok();
}

Status Unigram::encodeText(std::string_view text, bool starts, std::vector<int32_t> &ids) const {
  std::string marked = markSpaces(vocabulary_, text, starts);
  std::vector<Node> nodes;
  for (std::string_view rest = marked; !rest.empty();) {
    size_t end =
        std::min(rest.size(), vocabulary_.splitAtSpaces ? rest.find(spaceMark, 1) : rest.size());
    STRATA_RETURN_IF_ERROR(encodeSpan(rest.substr(0, end), nodes, ids));
    rest.remove_prefix(end);
  }
  return Status::ok();
}

} // namespace

Result<std::unique_ptr<Tokenizer>> createUnigram(Vocabulary vocabulary) {
  auto tokenizer = std::make_unique<Unigram>(std::move(vocabulary));
  STRATA_RETURN_IF_ERROR(tokenizer->prepare());
  STRATA_RETURN_IF_ERROR(tokenizer->build());
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

} // namespace strata
