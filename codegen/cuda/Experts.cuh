// expert_lists, expert_up.<type> and expert_down.<type>: rows go through the experts that a router
// chose for them. Bound by the bytes of the experts used while rows are few; each row reads its
// experts' weights anew, from the cache where another has read them.
#pragma once

#include "codegen/cuda/Elementwise.cuh"
#include "codegen/cuda/WarpDot.cuh"

namespace strata {

/// The lists that expert_lists makes (StrataExpertOps.td says in which words).
template <uint64_t Experts> struct ExpertLists {
  uint32_t *words;

  uint32_t &usedCount() const { return words[0]; }
  uint32_t &used(uint64_t i) const { return words[1 + i]; }
  uint32_t &begin(uint64_t expert) const { return words[1 + Experts + expert]; }
  uint32_t *entry(uint64_t i) const { return words + 2 + 2 * Experts + 2 * i; }
};

/// A whole number that is stored as F32; one outside is brought inside.
inline uint64_t numberAt(const float *at, uint64_t limit) {
  float number = *at;
  return number > 0 ? number < float(limit) ? uint64_t(number) : limit - 1 : 0;
}

/// One block. A thread counts an expert's rows and then lists them, in order.
template <class K> inline void expertLists(const Slots<5> &slots) {
  enum { Routing, Words, ValidRows };
  __shared__ uint32_t counts[K::experts];
  awaitPredecessor();
  uint64_t choices = uint64_t(*slots.pointer<const uint32_t>(ValidRows)) * K::used;
  auto *routing = slots.pointer<const float>(Routing);
  const ExpertLists<K::experts> lists{slots.pointer<uint32_t>(Words)};
  auto choiceAt = [&](uint64_t i) { return routing + i / K::used * 2 * K::used + i % K::used; };
  for (uint32_t e = threadIdx.x; e < K::experts; e += K::threads) {
    uint32_t count = 0;
    for (uint64_t i = 0; i < choices; ++i)
      count += numberAt(choiceAt(i), K::experts) == e;
    counts[e] = count;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    uint32_t begin = 0, used = 0;
    for (uint32_t e = 0; e < K::experts; ++e) {
      lists.begin(e) = begin;
      begin += counts[e];
      if (counts[e] > 0)
        lists.used(used++) = e;
    }
    lists.begin(K::experts) = begin;
    lists.usedCount() = used;
  }
  __syncthreads();
  for (uint32_t e = threadIdx.x; e < K::experts; e += K::threads) {
    uint32_t at = lists.begin(e);
    for (uint64_t i = 0; i < choices; ++i) {
      if (numberAt(choiceAt(i), K::experts) != e)
        continue;
      uint32_t *entry = lists.entry(at++);
      entry[0] = uint32_t(i / K::used);
      entry[1] = __float_as_uint(choiceAt(i)[K::used]);
    }
  }
}

/// What expert_up and expert_down share. Lists that another kernel wrote may say anything: what lies
/// outside is left out.
template <class T, class K> struct ExpertCommand {
  enum { X, Lists, Weight, ExpertSlot, Labels, Y, ValidRows };
  static constexpr uint64_t perRow = K::used < K::count ? K::used : K::count;

  const uint64_t *slots;
  ExpertLists<K::experts> lists{reinterpret_cast<uint32_t *>(slots[Lists])};
  uint64_t rows = *reinterpret_cast<const uint32_t *>(slots[ValidRows]);
  uint64_t first = lists.begin(K::first);

  /// Entries of the command's experts: [first, first + entries()).
  uint64_t entries() const {
    uint64_t end = lists.begin(K::first + K::count), most = rows * perRow;
    uint64_t left = first < rows * K::used ? rows * K::used - first : 0;
    uint64_t count = end > first ? end - first : 0;
    count = count < most ? count : most;
    return count < left ? count : left;
  }
  uint64_t rowOf(uint64_t entry) const {
    uint32_t row = lists.entry(entry)[0];
    return row < rows ? row : 0;
  }
  /// Weights of one output of an expert.
  const uint8_t *weight(uint64_t expert, uint64_t output) const {
    uint64_t slot = numberAt(reinterpret_cast<const float *>(slots[ExpertSlot]) + expert,
                             K::experts);
    return reinterpret_cast<const uint8_t *>(slots[Weight]) +
           (slot * K::outputs + output) * rowBytes<T, K::columns>();
  }
  /// First value of the expert's group in a labelled row of groups of `width`.
  uint64_t group(uint64_t expert, uint64_t width) const {
    auto *labels = reinterpret_cast<const float *>(slots[Labels]);
    return labels ? numberAt(labels + expert, K::row_width / width) * width : 0;
  }
};

template <class K> inline float expertFunction(float x) {
  if constexpr (K::function == 0)
    return Silu::apply(x);
  else if constexpr (K::function == 1)
    return GeluTanh::apply(x);
  else if constexpr (K::function == 2)
    return Relu2::apply(x);
  else if constexpr (K::function == 3)
    return Sigmoid::apply(x);
  else
    return x;
}

/// One block is one entry of the lists, one of its warps an output.
template <class T, class K> inline void expertUp(const Slots<19> &slots) {
  using Command = ExpertCommand<T, K>;
  awaitPredecessor();
  const Command command{slots.at};
  uint64_t place = blockIdx.x, output = blockIdx.y * (K::threads / warpThreads) +
                                        threadIdx.x / warpThreads;
  if (place >= command.entries() || output >= K::outputs)
    return;
  // The last expert that begins at the entry or before it.
  uint64_t entry = command.first + place, expert = K::first, end = K::first + K::count;
  while (end - expert > 1) {
    uint64_t middle = (expert + end) / 2;
    (command.lists.begin(middle) <= entry ? expert : end) = middle;
  }
  const float *x = slots.pointer<const float>(Command::X) + command.rowOf(entry) * K::row_width +
                   command.group(expert, K::columns);
  float value = warpDot<T, K::columns>(command.weight(expert, output), x);
  if (threadIdx.x % warpThreads != 0)
    return;
  float *y = slots.pointer<float>(Command::Y) + place * K::outputs + output;
  *y = K::gated ? expertFunction<K>(*y) * value : expertFunction<K>(value);
}

/// One block is one row, one of its warps an output: sums follow the experts' numbers.
template <class T, class K> inline void expertDown(const Slots<17> &slots) {
  using Command = ExpertCommand<T, K>;
  constexpr uint32_t none = 0xFFFFFFFF;
  __shared__ uint32_t entryOf[K::count]; // of the block's row, by expert
  awaitPredecessor();
  uint64_t row = blockIdx.x;
  if (row >= *slots.valid)
    return;
  const Command command{slots.at};
  uint64_t last = command.first + command.entries();
  for (uint32_t i = threadIdx.x; i < K::count; i += K::threads) {
    // An expert's rows rise.
    uint64_t begin = command.lists.begin(K::first + i), end = command.lists.begin(K::first + i + 1);
    begin = begin < command.first ? command.first : begin;
    end = end > last ? last : end;
    while (begin < end && command.lists.entry(begin)[0] != row) {
      uint64_t middle = (begin + end) / 2;
      if (command.lists.entry(middle)[0] <= row)
        begin = middle > begin ? middle : begin + 1;
      else
        end = middle;
    }
    entryOf[i] = begin < end ? uint32_t(begin) : none;
  }
  __syncthreads();
  uint64_t output = blockIdx.y * (K::threads / warpThreads) + threadIdx.x / warpThreads;
  if (output >= K::outputs)
    return;
  bool isFirstLane = threadIdx.x % warpThreads == 0;
  float *y = slots.pointer<float>(Command::Y) + row * K::row_width + output;
  if (!K::accumulate && isFirstLane)
    for (uint64_t group = 0; group + output < K::row_width; group += K::outputs)
      y[group] = 0;
  for (uint32_t i = 0; i < K::count; ++i) {
    uint64_t entry = entryOf[i];
    if (entry == none)
      continue;
    uint64_t expert = K::first + i;
    const float *x =
        slots.pointer<const float>(Command::X) + (entry - command.first) * K::columns;
    float value = warpDot<T, K::columns>(command.weight(expert, output), x);
    float weight = __uint_as_float(command.lists.entry(entry)[1]);
    if (isFirstLane)
      y[command.group(expert, K::outputs)] += weight * value;
  }
}

} // namespace strata
