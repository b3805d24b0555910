#include <numeric>

#include "test/codegen/cpu/KernelData.h"

namespace strata::cpu {
namespace {

constexpr uint32_t rows = 5, experts = 6, used = 3;

/// Numbers and weights of `used` different experts for each row; expert 4 has none.
std::vector<float> makeRouting() {
  const float chosen[rows][used] = {{3, 0, 5}, {1, 0, 2}, {0, 5, 3}, {5, 1, 0}, {0, 2, 3}};
  std::vector<float> weights = randomFloats(rows * used, 11), routing;
  for (uint32_t row = 0; row < rows; ++row) {
    routing.insert(routing.end(), chosen[row], chosen[row] + used);
    routing.insert(routing.end(), &weights[row * used], &weights[row * used] + used);
  }
  return routing;
}

constexpr uint32_t listWords = 2 * experts + 2 + 2 * rows * used;

std::vector<uint32_t> makeLists(Isa isa, const std::vector<float> &routing, uint32_t count) {
  std::vector<uint32_t> lists(listWords + 1, 0xDEADBEEF);
  KernelCall("expert_lists", isa,
             {{"routing", routing},
              {"lists", lists},
              {"valid_rows", &count},
              {"experts", experts},
              {"used", used}})
      .run(0, 1);
  EXPECT_EQ(lists.back(), 0xDEADBEEF) << "past the lists";
  return lists;
}

class ExpertListsTest : public KernelTest {};

TEST_P(ExpertListsTest, SortsByExpertThenRow) {
  std::vector<float> routing = makeRouting();
  std::vector<uint32_t> lists = makeLists(isa(), routing, 2); // rows 0 and 1 alone
  // Used: 0 (rows 0, 1), 1 (row 1), 2 (row 1), 3 (row 0), 5 (row 0).
  EXPECT_EQ(lists[0], 5u);
  EXPECT_THAT(std::vector(lists.begin() + 1, lists.begin() + 6),
              testing::ElementsAre(0, 1, 2, 3, 5));
  EXPECT_THAT(std::vector(lists.begin() + 1 + experts, lists.begin() + 2 + 2 * experts),
              testing::ElementsAre(0, 2, 3, 4, 5, 5, 6));
  const uint32_t *entries = &lists[2 + 2 * experts];
  EXPECT_THAT(
      (std::vector{entries[0], entries[2], entries[4], entries[6], entries[8], entries[10]}),
      testing::ElementsAre(0, 1, 1, 1, 0, 0));
  EXPECT_EQ(std::memcmp(&entries[1], &routing[4], 4), 0);  // row 0's weight of expert 0
  EXPECT_EQ(std::memcmp(&entries[11], &routing[5], 4), 0); // and of expert 5
}

TEST_P(ExpertListsTest, BringsForeignNumbersInside) {
  std::vector<float> routing = makeRouting();
  for (uint32_t row = 0; row < rows; ++row)
    for (uint32_t i = 0; i < used; ++i)
      routing[row * 2 * used + i] = i == 0 ? NAN : i == 1 ? -7.0f : 1e30f;
  std::vector<uint32_t> lists = makeLists(isa(), routing, rows);
  EXPECT_EQ(lists[0], 2u); // NaN and -7 are expert 0, 1e30 is the last
  EXPECT_EQ(lists[1 + experts + experts], rows * used);
}

STRATA_TEST_KERNELS(ExpertListsTest, {"expert_lists"});

/// Experts of one type with everything that the two kernels take.
class ExpertTest : public KernelTest {
protected:
  struct Shape {
    uint32_t columns, outputs, groups = 1; // of the rows outside: [groups * width]
    uint32_t first = 0, count = experts;
  };

  void prepare(const Shape &shape, bool isUp) {
    routing_ = makeRouting();
    const WeightType &type = *findWeightType(suffix());
    weights_ = randomWeights(type, size_t(experts) * shape.outputs * shape.columns, 1);
    slots_ = {2, 0, 1, 5, 3, 4};
    labels_.clear();
    for (uint32_t e = 0; e < experts; ++e)
      labels_.push_back(float(e % shape.groups));
    width_ = shape.groups * (isUp ? shape.columns : shape.outputs);
    scratch_.assign(2 * scratchBytes(kernel(), shape.columns), 0);
  }

  KernelCall call(const Shape &shape, const float *x, const std::vector<uint32_t> &lists, float *y,
                  const uint32_t &count,
                  std::initializer_list<std::pair<std::string_view, SlotValue>> others) {
    std::vector<std::pair<std::string_view, SlotValue>> values = {
        {"x", x},
        {"lists", lists},
        {"weight", weights_.bytes},
        {"expert_slot", slots_},
        {"labels", shape.groups > 1 ? SlotValue(labels_) : SlotValue(nullptr)},
        {"y", y},
        {"valid_rows", &count},
        {"scratch", scratch_},
        {"scratch_stride", scratchBytes(kernel(), shape.columns)},
        {"columns", shape.columns},
        {"outputs", shape.outputs},
        {"row_width", width_},
        {"experts", experts},
        {"used", used},
        {"first", shape.first},
        {"count", shape.count}};
    values.insert(values.end(), others);
    return KernelCall(kernel(), isa(), values);
  }

  double weight(const Shape &shape, uint32_t expert, uint32_t output, uint32_t column) const {
    auto slot = size_t(slots_[expert]);
    return weights_.values[(slot * shape.outputs + output) * shape.columns + column];
  }
  uint32_t group(const Shape &shape, uint32_t expert, bool isUp) const {
    return shape.groups == 1 ? 0
                             : uint32_t(labels_[expert]) * (isUp ? shape.columns : shape.outputs);
  }
  /// (row, weight) of each entry of the shape's experts, in the order of the lists, with the
  /// expert.
  struct Entry {
    uint32_t expert, row;
    float weight;
  };
  std::vector<Entry> entries(const Shape &shape, uint32_t count) const {
    std::vector<Entry> found;
    for (uint32_t e = shape.first; e < shape.first + shape.count; ++e)
      for (uint32_t row = 0; row < count; ++row)
        for (uint32_t i = 0; i < used; ++i)
          if (routing_[row * 2 * used + i] == float(e))
            found.push_back({e, row, routing_[row * 2 * used + used + i]});
    return found;
  }
  static uint32_t tiles(uint32_t outputs) {
    return (outputs + linearTileOutputs - 1) / linearTileOutputs;
  }

  std::vector<float> routing_, slots_, labels_;
  WeightMatrix weights_;
  uint32_t width_ = 0;
  std::vector<uint8_t> scratch_;
};

class ExpertUpTest : public ExpertTest {};

TEST_P(ExpertUpTest, MultipliesEachExpertsRows) {
  uint32_t block = findWeightType(suffix())->blockElements;
  for (Shape shape : {Shape{3 * block, 17}, Shape{block, 5, 2}, Shape{block, 16, 1, 1, 3}}) {
    prepare(shape, true);
    std::vector<float> x = randomFloats(rows * width_, 2);
    for (bool gated : {false, true}) {
      auto run = [&](uint32_t count, bool byUse, bool split) {
        std::vector<uint32_t> lists = makeLists(isa(), routing_, count);
        GuardedRows y(rows * used, shape.outputs);
        std::vector<Entry> known = entries(shape, count);
        for (size_t i = 0; i < known.size() * shape.outputs; ++i)
          y.data()[i] = 0.5f;
        KernelCall one = call(shape, x.data(), lists, y.data(), count,
                              {{"by_use", byUse}, {"gated", gated}, {"function", gated ? 0 : 2}});
        uint32_t items = (byUse ? count * used : shape.count) * tiles(shape.outputs);
        if (split)
          for (uint32_t item = items; item-- > 0;)
            one.run(item, item + 1, item % 2);
        else
          one.run(0, items);
        EXPECT_TRUE(y.touchedOnly(0, known.size()));
        for (size_t i = 0; i < known.size(); ++i)
          for (uint32_t o = 0; o < shape.outputs; ++o) {
            double sum = 0, squares = 0;
            for (uint32_t c = 0; c < shape.columns; ++c) {
              double term = weight(shape, known[i].expert, o, c) *
                            x[known[i].row * width_ + group(shape, known[i].expert, true) + c];
              sum += term, squares += term * term;
            }
            double want = gated ? 0.5 / (1 + std::exp(-0.5)) * sum : sum > 0 ? sum * sum : 0;
            double scale = std::sqrt(squares) * (gated ? 1 : 2 * std::abs(sum) + 1e-3);
            EXPECT_NEAR(y.row(i)[o], want, 3e-5 * scale) << "entry " << i << " output " << o;
          }
        return y;
      };
      bool whole = shape.count == experts;
      GuardedRows all = run(rows, false, false), split = run(rows, whole, true);
      EXPECT_TRUE(sameBits(all.data(), split.data(), entries(shape, rows).size() * shape.outputs));
      run(1, whole, false); // one row of each expert: a path of its own
    }
  }
}

STRATA_TEST_KERNELS(ExpertUpTest, kernelsOf("expert_up."));

class ExpertDownTest : public ExpertTest {};

TEST_P(ExpertDownTest, AddsInOrderWhateverTheGroups) {
  uint32_t block = findWeightType(suffix())->blockElements;
  for (Shape shape : {Shape{block, 18}, Shape{2 * block, 16, 2}}) {
    prepare(shape, false);
    auto run = [&](uint32_t firstRow, uint32_t count, std::vector<uint32_t> cuts) {
      std::vector<float> kept = routing_;
      routing_.erase(routing_.begin(), routing_.begin() + firstRow * 2 * used);
      std::vector<uint32_t> lists = makeLists(isa(), routing_, count);
      GuardedRows y(rows, width_);
      uint32_t first = 0;
      for (uint32_t end : cuts) {
        Shape part = shape;
        part.first = first, part.count = end - first;
        std::vector<float> x;
        for (const Entry &entry : entries(part, count)) {
          std::vector<float> row =
              randomFloats(shape.columns, 100 * entry.expert + entry.row + firstRow);
          x.insert(x.end(), row.begin(), row.end());
        }
        call(part, x.data(), lists, y.data(), count, {{"accumulate", first > 0}})
            .run(0, tiles(shape.outputs));
        first = end;
      }
      EXPECT_TRUE(y.touchedOnly(0, count));
      std::vector<double> want(count * width_), scale(count * width_, 1e-12);
      for (const Entry &entry : entries(shape, count)) {
        std::vector<float> row =
            randomFloats(shape.columns, 100 * entry.expert + entry.row + firstRow);
        for (uint32_t o = 0; o < shape.outputs; ++o) {
          size_t at = entry.row * width_ + group(shape, entry.expert, false) + o;
          for (uint32_t c = 0; c < shape.columns; ++c) {
            double term = entry.weight * weight(shape, entry.expert, o, c) * row[c];
            want[at] += term, scale[at] += term * term;
          }
        }
      }
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_NEAR(y.data()[i], want[i], 3e-5 * std::sqrt(scale[i])) << "value " << i;
      routing_ = kept;
      return y;
    };
    GuardedRows whole = run(0, rows, {experts}), cut = run(0, rows, {1, 4, experts});
    EXPECT_TRUE(sameBits(whole.data(), cut.data(), rows * width_));
    GuardedRows alone = run(3, 1, {experts}); // row 3 by itself
    EXPECT_TRUE(sameBits(whole.row(3), alone.row(0), width_));
  }
}

STRATA_TEST_KERNELS(ExpertDownTest, kernelsOf("expert_down."));

TEST(ExpertTables, ForeignListsReachNothingOutside) {
  // Lists of random words: rows, places and experts that do not exist.
  for (Isa isa : runnableIsas()) {
    std::vector<uint32_t> lists(listWords);
    std::mt19937 generator(1);
    for (uint32_t &word : lists)
      word = generator();
    constexpr uint32_t columns = 8, outputs = 16;
    std::vector<float> x(rows * used * columns, 1), weight(experts * outputs * columns, 1);
    std::vector<float> slots = {-1, NAN, 1e9f, 3, 99, INFINITY}, labels = slots;
    GuardedRows up(rows * used, outputs), down(rows, 2 * outputs);
    std::vector<uint8_t> scratch(scratchBytes("expert_up.f32", columns));
    uint32_t count = rows;
    for (bool isUp : {true, false}) {
      std::vector<std::pair<std::string_view, SlotValue>> values = {
          {"x", x},
          {"lists", lists},
          {"weight", weight},
          {"expert_slot", slots},
          {"labels", isUp ? SlotValue(nullptr) : SlotValue(labels)},
          {"y", isUp ? up.data() : down.data()},
          {"valid_rows", &count},
          {"scratch", scratch},
          {"scratch_stride", 0},
          {"columns", columns},
          {"outputs", outputs},
          {"row_width", isUp ? columns : 2 * outputs},
          {"experts", experts},
          {"used", used},
          {"first", 0},
          {"count", experts}};
      if (isUp)
        values.insert(values.end(), {{"by_use", 1}, {"gated", 0}, {"function", 4}});
      else
        values.push_back({"accumulate", 1});
      KernelCall(isUp ? "expert_up.f32" : "expert_down.f32", isa, values)
          .run(0, isUp ? rows * used : 1);
    }
    EXPECT_TRUE(up.touchedOnly(0, rows * used));
    EXPECT_TRUE(down.touchedOnly(0, rows));
  }
}

} // namespace
} // namespace strata::cpu
