// expert_lists, expert_up.<type> and expert_down.<type>: rows go through the experts that a router
// chose for them.
//
// A weight row is read once a step for all the rows of its expert, as it is stored. With few rows
// the bound is the bytes of the experts used, with many the multiply-adds (Tile.h). Sums over
// experts follow the experts' numbers, so a row's bits do not depend on the batch.
#include "codegen/cpu/Functions.h"
#include "codegen/cpu/Tile.h"

namespace strata::cpu::STRATA_ISA_NAMESPACE {
namespace {

/// The lists that expert_lists makes (StrataExpertOps.td says in which words).
struct Lists {
  uint32_t *words;
  uint64_t experts;

  uint32_t &usedCount() const { return words[0]; }
  uint32_t &used(uint64_t i) const { return words[1 + i]; }
  uint32_t &begin(uint64_t expert) const { return words[1 + experts + expert]; }
  uint32_t *entry(uint64_t i) const { return words + 2 + 2 * experts + 2 * i; }
};

// A row's choices are valid numbers, each once: that is what `router` writes. A plan may feed
// something else, so a number outside is brought inside.
STRATA_INLINE uint64_t expertAt(const float *routing, uint64_t experts) {
  float number = *routing;
  return number > 0 ? number < float(experts) ? uint64_t(number) : experts - 1 : 0;
}

void expertLists(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t) {
  enum { Routing, Words, ValidRows, Experts, Used };
  uint64_t experts = slots[Experts], used = slots[Used];
  uint64_t rows = *pointerAt<const uint32_t>(slots, ValidRows);
  for (uint32_t item = begin; item < end; ++item) {
    Lists lists{pointerAt<uint32_t>(slots, Words), experts};
    const float *routing = pointerAt<const float>(slots, Routing);
    for (uint64_t e = 0; e <= experts; ++e)
      lists.begin(e) = 0;
    for (uint64_t row = 0; row < rows; ++row)
      for (uint64_t i = 0; i < used; ++i)
        ++lists.begin(expertAt(routing + row * 2 * used + i, experts) + 1);
    lists.usedCount() = 0;
    for (uint64_t e = 0; e < experts; ++e) {
      if (lists.begin(e + 1) > 0)
        lists.used(lists.usedCount()++) = uint32_t(e);
      lists.begin(e + 1) += lists.begin(e);
    }
    // Filling moves each begin to its end; afterwards every begin is its predecessor's.
    for (uint64_t row = 0; row < rows; ++row)
      for (uint64_t i = 0; i < used; ++i) {
        const float *choice = routing + row * 2 * used + i;
        uint32_t *entry = lists.entry(lists.begin(expertAt(choice, experts))++);
        entry[0] = uint32_t(row);
        std::memcpy(entry + 1, choice + used, sizeof(float));
      }
    for (uint64_t e = experts; e > 0; --e)
      lists.begin(e) = lists.begin(e - 1);
    lists.begin(0) = 0;
  }
}

/// The slots that both kernels begin with.
enum Slot {
  X,
  ListsWords,
  Weight,
  ExpertSlot,
  Labels,
  Y,
  ValidRows,
  Scratch,
  ScratchStride,
  Columns,
  Outputs,
  RowWidth, // of the rows that are grouped by label: x of expert_up, y of expert_down
  Experts,
  Used,
  First,
  Count,
  Last
};

/// The part of a command that one expert does.
struct Part {
  uint32_t rows;
  uint64_t firstEntry;
  uint64_t slot;  ///< Index in the stack of weights.
  uint64_t group; ///< First value of its group in a labelled row.
};

class Command {
public:
  explicit Command(const uint64_t *slots)
      : slots_(slots), lists_{pointerAt<uint32_t>(slots, ListsWords), slots[Experts]},
        rows_(*pointerAt<const uint32_t>(slots, ValidRows)), first_(lists_.begin(slots[First])) {}

  /// Lists that another kernel wrote may say anything: what lies outside is left out.
  Part part(uint64_t expert, uint64_t groupWidth) const {
    uint64_t begin = lists_.begin(expert), end = lists_.begin(expert + 1);
    uint64_t perRow = slots_[Used] < slots_[Count] ? slots_[Used] : slots_[Count];
    bool isInside = begin <= end && begin >= first_ && end - first_ <= rows_ * perRow &&
                    end <= rows_ * slots_[Used];
    uint64_t slot = expertAt(pointerAt<const float>(slots_, ExpertSlot) + expert, slots_[Experts]);
    uint64_t group = 0;
    if (auto *labels = pointerAt<const float>(slots_, Labels))
      group = expertAt(labels + expert, slots_[RowWidth] / groupWidth) * groupWidth;
    return {isInside ? uint32_t(end - begin) : 0, begin, slot, group};
  }

  uint64_t rowOf(uint64_t entry) const {
    uint32_t row = lists_.entry(entry)[0];
    return row < rows_ ? row : 0;
  }
  float weightOf(uint64_t entry) const { return __builtin_bit_cast(float, lists_.entry(entry)[1]); }
  /// Where an entry's row stands among those of the command's experts.
  uint64_t placeOf(uint64_t entry) const { return entry - first_; }
  const Lists &lists() const { return lists_; }

  template <class T> TileWeight tile(const Part &part, uint64_t firstOutput) const {
    uint64_t columns = slots_[Columns];
    uint64_t stride = columns / T::blockElements * T::blockBytes;
    return {pointerAt<const uint8_t>(slots_, Weight) +
                (part.slot * slots_[Outputs] + firstOutput) * stride,
            stride, columns};
  }

private:
  const uint64_t *slots_;
  Lists lists_;
  uint64_t rows_, first_;
};

STRATA_INLINE float applyFunction(uint64_t function, float value) {
  Lanes x = splat(value);
  switch (function) {
  case 0:
    return firstOf(Silu::apply(x));
  case 1:
    return firstOf(GeluTanh::apply(x));
  case 2:
    return firstOf(Relu2::apply(x));
  case 3:
    return firstOf(Sigmoid::apply(x));
  default:
    return value;
  }
}

STRATA_INLINE uint32_t outputsOf(const uint64_t *slots, uint64_t first) {
  uint64_t left = slots[Outputs] - first;
  return uint32_t(left < linearTileOutputs ? left : linearTileOutputs);
}

/// An item is a tile of 16 outputs of one expert.
template <class T>
void expertUp(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t worker) {
  enum { ByUse = Last, Gated, Function };
  uint64_t outputs = slots[Outputs], tiles = (outputs + linearTileOutputs - 1) / linearTileOutputs;
  auto *scratch = reinterpret_cast<float *>(slots[Scratch] + worker * slots[ScratchStride]);
  const Command command(slots);
  const float *x = pointerAt<const float>(slots, X);
  for (uint64_t item = begin; item < end; ++item) {
    uint64_t expert = item / tiles, firstOutput = item % tiles * linearTileOutputs;
    if (!slots[ByUse]) {
      expert += slots[First];
    } else {
      if (expert >= command.lists().usedCount() || expert >= slots[Experts])
        continue;
      expert = command.lists().used(expert);
    }
    if (expert >= slots[Experts])
      continue;
    Part part = command.part(expert, slots[Columns]);
    float *y =
        pointerAt<float>(slots, Y) + command.placeOf(part.firstEntry) * outputs + firstOutput;
    if (part.rows == 0)
      continue;
    multiplyTile<T>(
        command.tile<T>(part, firstOutput), outputsOf(slots, firstOutput), part.rows, scratch,
        [&](uint32_t row) {
          return x + command.rowOf(part.firstEntry + row) * slots[RowWidth] + part.group;
        },
        [&](uint32_t row, uint32_t output, float value) {
          float *to = y + row * outputs + output;
          *to = slots[Gated] ? applyFunction(slots[Function], *to) * value
                             : applyFunction(slots[Function], value);
        });
  }
}

/// An item is a tile of 16 outputs, for all rows and all of the command's experts.
template <class T>
void expertDown(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t worker) {
  enum { Accumulate = Last };
  uint64_t rowWidth = slots[RowWidth], columns = slots[Columns];
  auto *scratch = reinterpret_cast<float *>(slots[Scratch] + worker * slots[ScratchStride]);
  const Command command(slots);
  const float *x = pointerAt<const float>(slots, X);
  uint64_t rows = *pointerAt<const uint32_t>(slots, ValidRows), outputs = slots[Outputs];
  for (uint64_t item = begin; item < end; ++item) {
    uint64_t firstOutput = item * linearTileOutputs;
    uint32_t count = outputsOf(slots, firstOutput);
    float *y = pointerAt<float>(slots, Y) + firstOutput;
    if (!slots[Accumulate])
      for (uint64_t row = 0; row < rows; ++row)
        for (uint64_t group = 0; group < rowWidth; group += outputs)
          std::memset(y + row * rowWidth + group, 0, count * sizeof(float));
    for (uint64_t expert = slots[First]; expert < slots[First] + slots[Count]; ++expert) {
      Part part = command.part(expert, outputs);
      if (part.rows == 0)
        continue;
      multiplyTile<T>(
          command.tile<T>(part, firstOutput), count, part.rows, scratch,
          [&](uint32_t row) { return x + command.placeOf(part.firstEntry + row) * columns; },
          [&](uint32_t row, uint32_t output, float value) {
            uint64_t entry = part.firstEntry + row;
            y[command.rowOf(entry) * rowWidth + part.group + output] +=
                command.weightOf(entry) * value;
          });
    }
  }
}

template <class T> constexpr KernelName upName{"expert_up.", T::name};
template <class T> constexpr KernelName downName{"expert_down.", T::name};

template <class List> struct Entries;
template <class... T> struct Entries<std::tuple<T...>> {
  static constexpr KernelEntry list[] = {{"expert_lists", expertLists},
                                         {upName<T>.view(), expertUp<T>}...,
                                         {downName<T>.view(), expertDown<T>}...};
};

} // namespace

KernelList expertKernels() {
  return {Entries<WeightTypeList>::list, 1 + 2 * std::tuple_size_v<WeightTypeList>};
}

} // namespace strata::cpu::STRATA_ISA_NAMESPACE
