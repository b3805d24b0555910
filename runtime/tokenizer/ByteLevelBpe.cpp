// Byte-level BPE: pre-tokenise, then merge bytes by rank. All texts are handled as the bytes that
// they stand for; printable code points exist only in the vocabulary as stored.
#include <array>
#include <bit>
#include <limits>

#include "runtime/tokenizer/ByteMap.h"
#include "runtime/tokenizer/CommonTokenizer.h"
#include "runtime/tokenizer/PairMerging.h"
#include "runtime/tokenizer/PatternSplitter.h"
#include "runtime/tokenizer/TextTable.h"

namespace strata {
namespace {

/// The bytes of every token, in one block.
struct TokenBytes {
  std::string bytes;
  std::vector<uint32_t> ends; ///< By id.

  std::string_view operator[](int32_t id) const {
    size_t begin = id > 0 ? ends[id - 1] : 0;
    return std::string_view(bytes).substr(begin, ends[id] - begin);
  }
};

/// (left id, right id) to rank: twelve bytes a merge and four bytes a slot.
class MergeTable {
public:
  struct Merge {
    int32_t left, right, result;
  };

  explicit MergeTable(size_t capacity)
      : shift_(64 - std::bit_width(capacity + capacity / 2 + 1)),
        slots_(size_t(1) << (64 - shift_), noPriority) {
    merges_.reserve(capacity);
  }

  /// Ranks count up from 0; a pair that is there already keeps its lower rank.
  void append(Merge merge) {
    uint32_t &slot = slots_[slotOf(merge.left, merge.right)];
    auto rank = uint32_t(merges_.size());
    merges_.push_back(merge);
    if (slot == noPriority)
      slot = rank;
  }

  PairMerge find(int32_t left, int32_t right) const {
    uint32_t rank = slots_[slotOf(left, right)];
    if (rank == noPriority)
      return {};
    return {rank, merges_[rank].result};
  }

private:
  size_t slotOf(int32_t left, int32_t right) const {
    uint64_t key = uint64_t(uint32_t(left)) << 32 | uint32_t(right);
    // The multiplier is 2^64 divided by the golden ratio: the top bits depend on every bit of the
    // key.
    size_t slot = ((key ^ key >> 29) * 0x9E3779B97F4A7C15u) >> shift_;
    while (slots_[slot] != noPriority &&
           (merges_[slots_[slot]].left != left || merges_[slots_[slot]].right != right))
      slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }

  int shift_;
  std::vector<uint32_t> slots_; ///< Ranks.
  std::vector<Merge> merges_;   ///< By rank.
};

struct BytesOf {
  const TokenBytes *tokenBytes;
  std::string_view operator()(int32_t id) const { return (*tokenBytes)[id]; }
};
using BytesTable = TextTable<BytesOf>;

class ByteLevelBpe final : public CommonTokenizer {
public:
  ByteLevelBpe(Vocabulary vocabulary, PatternSplitter splitter)
      : CommonTokenizer(std::move(vocabulary)), splitter_(std::move(splitter)),
        table_(BytesOf{&tokenBytes_}, vocabulary_.tokens.size()),
        merges_(vocabulary_.merges.size()) {}

  Status build();

private:
  Status encodeText(std::string_view text, bool starts, std::vector<int32_t> &ids) const override;
  std::string textOf(int32_t id) const override { return std::string(tokenBytes_[id]); }

  Status buildTokenBytes();
  Status buildMerges();
  Status encodePiece(std::string_view piece, PairMerging &merging, std::vector<int32_t> &ids) const;

  PatternSplitter splitter_;
  TokenBytes tokenBytes_;
  BytesTable table_;
  MergeTable merges_;
  std::array<int32_t, 256> byteIds_; ///< -1 where no token stands for the byte alone.
};

Status ByteLevelBpe::buildTokenBytes() {
  tokenBytes_.ends.reserve(vocabulary_.tokens.size());
  for (size_t id = 0; id < vocabulary_.tokens.size(); ++id) {
    const std::string &text = vocabulary_.tokens[id];
    TokenKind kind = vocabulary_.kinds[id];
    bool verbatim =
        kind == TokenKind::Control || kind == TokenKind::Unknown || kind == TokenKind::UserDefined;
    // An ordinary token with a character outside the map can only be meant verbatim.
    if (verbatim || !appendMappedBytes(text, tokenBytes_.bytes))
      tokenBytes_.bytes += text;
    if (tokenBytes_.bytes.size() > std::numeric_limits<uint32_t>::max())
      return makeError(StatusCode::InvalidData,
                       "the first {} of {} tokens take {} bytes; all may take at most 4 GiB",
                       id + 1, vocabulary_.tokens.size(), tokenBytes_.bytes.size());
    tokenBytes_.ends.push_back(uint32_t(tokenBytes_.bytes.size()));
  }
  tokenBytes_.bytes.shrink_to_fit();
  return Status::ok();
}

Status ByteLevelBpe::buildMerges() {
  std::string bytes;
  for (size_t rank = 0; rank < vocabulary_.merges.size(); ++rank) {
    std::string_view entry = vocabulary_.merges[rank];
    size_t space = entry.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == entry.size())
      return makeError(StatusCode::InvalidData,
                       "merge {} is '{}'; a merge is two tokens with one space between", rank,
                       entry);
    std::string_view names[] = {entry.substr(0, space), entry.substr(space + 1)};
    int32_t parts[3];
    bytes.clear();
    size_t middle = 0;
    for (int i = 0; i < 2; ++i) {
      middle = bytes.size();
      if (!appendMappedBytes(names[i], bytes))
        bytes += names[i];
      parts[i] = table_.find(std::string_view(bytes).substr(middle));
    }
    parts[2] = table_.find(bytes);
    for (int i = 0; i < 3; ++i)
      if (parts[i] < 0)
        return makeError(
            StatusCode::InvalidData,
            "merge {} ('{}') {} '{}', which is no ordinary token of the vocabulary of {}; "
            "the merges belong to another vocabulary",
            rank, entry, i < 2 ? "names" : "makes",
            i < 2 ? std::string(names[i]) : std::string(names[0]).append(names[1]),
            vocabulary_.tokens.size());
    merges_.append({parts[0], parts[1], parts[2]});
  }
  // The table says it all in a fraction of the memory.
  std::vector<std::string>().swap(vocabulary_.merges);
  return Status::ok();
}

Status ByteLevelBpe::build() {
  STRATA_RETURN_IF_ERROR(buildTokenBytes());
  for (int32_t id : mergeableIds(vocabulary_))
    table_.insert(id);
  for (int byte = 0; byte < 256; ++byte) {
    char text = char(byte);
    byteIds_[byte] = table_.find({&text, 1});
  }
  return buildMerges();
}

Status ByteLevelBpe::encodePiece(std::string_view piece, PairMerging &merging,
                                 std::vector<int32_t> &ids) const {
  if (vocabulary_.ignoreMerges)
    if (int32_t id = table_.find(piece); id >= 0) {
      ids.push_back(id);
      return Status::ok();
    }
  merging.symbols.clear();
  for (size_t i = 0; i < piece.size(); ++i) {
    auto byte = uint8_t(piece[i]);
    if (byteIds_[byte] < 0)
      return makeError(
          StatusCode::InvalidArgument,
          "no token of the vocabulary of {} covers byte 0x{:02X}; leave it out of the text",
          vocabulary_.tokens.size(), byte);
    merging.symbols.push_back({uint32_t(i), byteIds_[byte]});
  }
  merging.run(
      uint32_t(piece.size()),
      [&](const MergeSymbol &left, const MergeSymbol &right, uint32_t) {
        return merges_.find(left.id, right.id);
      },
      [](const MergeSymbol &, const MergeSymbol &, uint32_t) {});
  merging.forEach(uint32_t(piece.size()),
                  [&](const MergeSymbol &symbol, uint32_t) { ids.push_back(symbol.id); });
  return Status::ok();
}

Status ByteLevelBpe::encodeText(std::string_view text, bool starts,
                                std::vector<int32_t> &ids) const {
  std::string prefixed;
  if (vocabulary_.addSpacePrefix && (starts || !vocabulary_.prefixStartOnly) &&
      !(vocabulary_.prefixUnlessSpace && text.starts_with(' '))) {
    prefixed.append(" ").append(text);
    text = prefixed;
  }
  auto pieces = splitter_.split(text);
  if (!pieces.isOk())
    return pieces.status();
  PairMerging merging;
  for (auto [begin, end] : *pieces)
    STRATA_RETURN_IF_ERROR(encodePiece(text.substr(begin, end - begin), merging, ids));
  return Status::ok();
}

} // namespace

Result<std::unique_ptr<Tokenizer>> createByteLevelBpe(Vocabulary vocabulary) {
  STRATA_ASSIGN_OR_RETURN(PatternSplitter splitter,
                          PatternSplitter::create(vocabulary.preTokenizer));
  auto tokenizer = std::make_unique<ByteLevelBpe>(std::move(vocabulary), std::move(splitter));
  STRATA_RETURN_IF_ERROR(tokenizer->prepare());
  STRATA_RETURN_IF_ERROR(tokenizer->build());
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

} // namespace strata
