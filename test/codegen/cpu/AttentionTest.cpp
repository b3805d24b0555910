#include <algorithm>
#include <numeric>

#include "test/codegen/cpu/KernelData.h"

namespace strata::cpu {
namespace {

struct Case {
  uint32_t queryHeads, kvHeads, keyWidth, valueWidth, window, blockTokens;
};

/// Two sequences in a pool of shuffled blocks, and queries at the end of each.
class AttentionFixture {
public:
  static constexpr uint32_t context = 150, sequences = 2;

  AttentionFixture(const WeightType &keyType, const WeightType &valueType, Case shape,
                   bool isLatent)
      : shape_(shape), isLatent_(isLatent),
        maxBlocks_((context + shape.blockTokens - 1) / shape.blockTokens),
        table_(sequences * maxBlocks_),
        keys_(randomWeights(keyType, size_t(sequences) * context * keyRow(), 1)),
        values_(randomWeights(valueType, size_t(sequences) * context * valueRow(), 2)) {
    std::iota(table_.begin(), table_.end(), 0);
    std::shuffle(table_.begin(), table_.end(), std::mt19937(3));
    uint64_t keyBytes = keyRow() * keyType.blockBytes,
             valueBytes = valueRow() * valueType.blockBytes;
    valueOffset_ = shape.blockTokens * keyBytes;
    blockStride_ = valueOffset_ + shape.blockTokens * valueBytes;
    // What no query may read is NaN: 0xFF in every byte, in each of the three types.
    pool_.assign(table_.size() * blockStride_, 0xFF);
    for (uint32_t s = 0; s < sequences; ++s)
      for (uint32_t t = 0; t < context; ++t) {
        size_t block = table_[s * maxBlocks_ + t / shape.blockTokens] * blockStride_;
        size_t place = t % shape.blockTokens, token = size_t(s) * context + t;
        std::memcpy(&pool_[block + place * keyBytes], &keys_.bytes[token * keyBytes], keyBytes);
        std::memcpy(&pool_[block + valueOffset_ + place * valueBytes],
                    &values_.bytes[token * valueBytes], valueBytes);
      }
  }

  /// Of a query head: a latent one meets the value too.
  uint32_t queryWidth() const { return shape_.keyWidth + (isLatent_ ? shape_.valueWidth : 0); }
  uint32_t keyRow() const { return shape_.kvHeads * shape_.keyWidth; }
  uint32_t valueRow() const { return shape_.kvHeads * shape_.valueWidth; }
  double scale() const { return 1 / std::sqrt(double(queryWidth())); }

  /// Every item as a range of its own, last first, where `split`.
  GuardedRows run(const std::string &kernel, Isa isa, const std::vector<float> &q,
                  const std::vector<int32_t> &sequence, const std::vector<int32_t> &position,
                  bool split = false) const {
    auto rows = uint32_t(sequence.size());
    GuardedRows y(rows + 1, shape_.queryHeads * shape_.valueWidth);
    KernelCall call(kernel, isa,
                    {{"q", q},
                     {"k", pool_},
                     {"v", pool_.data() + valueOffset_},
                     {"y", y.data()},
                     {"block_table", table_},
                     {"row_sequence", sequence},
                     {"row_position", position},
                     {"query_heads", shape_.queryHeads},
                     {"kv_heads", shape_.kvHeads},
                     {"key_width", shape_.keyWidth},
                     {"value_width", shape_.valueWidth},
                     {"scale", scale()},
                     {"window", shape_.window},
                     {"block_tokens", shape_.blockTokens},
                     {"block_stride", blockStride_},
                     {"max_blocks", maxBlocks_}});
    uint32_t items = rows * shape_.queryHeads;
    if (split)
      for (uint32_t item = items; item-- > 0;)
        call.run(item, item + 1);
    else
      call.run(0, items);
    EXPECT_TRUE(y.touchedOnly(0, rows));
    return y;
  }

  std::vector<double> expected(const float *q, int32_t sequence, int32_t position,
                               uint32_t head) const {
    uint32_t kvHead = head / (shape_.queryHeads / shape_.kvHeads);
    int32_t first = shape_.window ? std::max(0, position + 1 - int32_t(shape_.window)) : 0;
    std::vector<double> scores, y(shape_.valueWidth);
    for (int32_t t = first; t <= position; ++t) {
      double score = 0;
      uint32_t keyAt = queryWidth() - shape_.keyWidth;
      for (uint32_t i = 0; i < keyAt; ++i)
        score +=
            double(q[i]) * double(values_.values[(size_t(sequence) * context + t) * valueRow() +
                                                 kvHead * shape_.valueWidth + i]);
      for (uint32_t i = 0; i < shape_.keyWidth; ++i)
        score +=
            double(q[keyAt + i]) * double(keys_.values[(size_t(sequence) * context + t) * keyRow() +
                                                       kvHead * shape_.keyWidth + i]);
      scores.push_back(score * scale());
    }
    double highest = *std::max_element(scores.begin(), scores.end()), total = 0;
    for (double &score : scores)
      total += score = std::exp(score - highest);
    for (int32_t t = first; t <= position; ++t)
      for (uint32_t i = 0; i < shape_.valueWidth; ++i)
        y[i] += scores[t - first] / total *
                double(values_.values[(size_t(sequence) * context + t) * valueRow() +
                                      kvHead * shape_.valueWidth + i]);
    return y;
  }

private:
  Case shape_;
  bool isLatent_;
  uint32_t maxBlocks_;
  std::vector<int32_t> table_;
  WeightMatrix keys_, values_;
  uint64_t valueOffset_, blockStride_;
  std::vector<uint8_t> pool_;
};

class AttentionTest : public KernelTest {
protected:
  std::string types() const { return suffix(); }
  AttentionFixture fixture(Case shape) const {
    size_t dot = types().find('.');
    return {*findWeightType(types().substr(0, dot)), *findWeightType(types().substr(dot + 1)),
            shape, kernel().starts_with("attention_latent")};
  }

  const std::vector<Case> cases = {
      {3, 3, 64, 64, 0, 16}, {9, 3, 64, 64, 0, 32},  {7, 1, 40, 24, 0, 8},
      {4, 2, 8, 8, 0, 5},    {2, 1, 80, 144, 0, 16}, {3, 1, 64, 64, 20, 16},
      {2, 2, 32, 16, 1, 4},  {2, 1, 48, 48, 64, 7},  {6, 2, 128, 128, 149, 32},
  };
  // The first tokens, the ends of tiles of 32, and a last token inside a block.
  const std::vector<int32_t> sequence = {0, 1, 0, 1, 0, 1, 0, 0, 1};
  const std::vector<int32_t> position = {0, 1, 30, 31, 32, 63, 64, 100, 149};
};

TEST_P(AttentionTest, AgreesWithDouble) {
  for (const Case &shape : cases) {
    AttentionFixture attention = fixture(shape);
    size_t qWidth = shape.queryHeads * attention.queryWidth();
    std::vector<float> q = randomFloats(sequence.size() * qWidth, 4);
    GuardedRows y = attention.run(kernel(), isa(), q, sequence, position);
    for (size_t row = 0; row < sequence.size(); ++row)
      for (uint32_t head = 0; head < shape.queryHeads; ++head) {
        std::vector<double> want =
            attention.expected(q.data() + row * qWidth + head * attention.queryWidth(),
                               sequence[row], position[row], head);
        for (uint32_t i = 0; i < shape.valueWidth; ++i)
          ASSERT_NEAR(y.row(row)[head * shape.valueWidth + i], want[i], 1e-5)
              << "row " << row << " head " << head << " window " << shape.window;
      }
  }
}

TEST_P(AttentionTest, ARowDoesNotDependOnItsBatchOrOnTheInstructionSet) {
  for (const Case &shape : cases) {
    AttentionFixture attention = fixture(shape);
    size_t qWidth = shape.queryHeads * attention.queryWidth();
    size_t yWidth = shape.queryHeads * shape.valueWidth;
    std::vector<float> q = randomFloats(sequence.size() * qWidth, 4);
    GuardedRows together = attention.run(kernel(), isa(), q, sequence, position);
    for (Isa other : runnableIsas()) {
      GuardedRows split = attention.run(kernel(), other, q, sequence, position, true);
      EXPECT_TRUE(sameBits(together.data(), split.data(), sequence.size() * yWidth));
    }
    for (size_t row = 0; row < sequence.size(); ++row) {
      std::vector<float> own(q.begin() + row * qWidth, q.begin() + (row + 1) * qWidth);
      GuardedRows alone = attention.run(kernel(), isa(), own, {sequence[row]}, {position[row]});
      EXPECT_TRUE(sameBits(together.row(row), alone.data(), yWidth));
    }
  }
}

/// How the pool is cut into blocks is a matter of memory, not of results.
TEST_P(AttentionTest, DoesNotDependOnTheSizeOfABlock) {
  Case shape = {3, 1, 64, 64, 0, 16};
  std::vector<float> q = randomFloats(sequence.size() * 3 * fixture(shape).queryWidth(), 4);
  GuardedRows a = fixture(shape).run(kernel(), isa(), q, sequence, position);
  GuardedRows b = fixture({3, 1, 64, 64, 0, 5}).run(kernel(), isa(), q, sequence, position);
  EXPECT_TRUE(sameBits(a.data(), b.data(), sequence.size() * 3 * 64));
}

TEST_P(AttentionTest, LargeScoresDoNotOverflow) {
  AttentionFixture attention = fixture({1, 1, 64, 64, 0, 16});
  std::vector<float> q = randomFloats(attention.queryWidth(), 4, 1e4f);
  GuardedRows y = attention.run(kernel(), isa(), q, {0}, {149});
  for (uint32_t i = 0; i < 64; ++i)
    EXPECT_TRUE(std::isfinite(y.data()[i]));
}

STRATA_TEST_KERNELS(AttentionTest, kernelsOf("attention"));

} // namespace
} // namespace strata::cpu
