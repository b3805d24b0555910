// sample: draws one id a head row, by the specification of runtime/sampling/Sampler.h, and reports it
// with the likeliest tokens.
//
// One block is one row, and passes over its logits, which lie in the L2 cache: once for the largest
// and once for the sum, a few times for the likeliest tokens and some thirty times for a large
// top-k or for top-p (a binary search over the bits of a logit, counting or weighing what is at least
// as likely). Sums are in F64
// and in an order that the vocabulary alone fixes. It is not the order of the host's sampler, so a
// draw can differ from the host's where the running sum comes within 1e-13 of its bound.
#pragma once

#include "codegen/cuda/Kernel.cuh"
#include "runtime/sampling/Elementary.h"
#include "runtime/sampling/Philox.h"

namespace strata {

constexpr uint32_t reportedTokens = 20;

/// The logit below the largest one: 0 at the largest, also where that is infinite.
inline float distance(float logit, float largest) {
  return logit == largest ? 0.0f : logit - largest;
}

/// Rises with the logit; equal logits have equal keys, 0 and -0 among them. NaN has 0, below all.
inline uint32_t keyOf(float logit) {
  if (logit != logit)
    return 0;
  uint32_t bits = __float_as_uint(logit == 0 ? 0.0f : logit);
  return bits & 0x80000000 ? ~bits : bits | 0x80000000;
}

/// A set of tokens, likeliest first: those above `key`, and of those at it the ones up to `lastId`.
struct Cut {
  uint32_t key = 1; ///< 1: every number.
  int32_t lastId = 0x7FFFFFFF;

  bool keeps(uint32_t token, int32_t id) const {
    return token > key || (token == key && id <= lastId);
  }
};

template <uint32_t Vocabulary, uint32_t Threads> class RowSampler {
public:
  explicit RowSampler(const float *logits) : logits_(logits) {}

  /// The set's tokens in order of ids, a contiguous part for each thread.
  static constexpr uint32_t part = (Vocabulary + Threads - 1) / Threads;

  template <class Value> auto total(Value value) const {
    decltype(value(0.0f, 0)) sum = 0;
    for (uint32_t id = threadIdx.x; id < Vocabulary; id += Threads)
      sum += value(logits_[id], int32_t(id));
    return blockSum<Threads>(sum);
  }

  float largest() const {
    float most = -INFINITY;
    for (uint32_t id = threadIdx.x; id < Vocabulary; id += Threads)
      most = fmaxf(most, logits_[id]); // NaN loses
    return blockReduce<Threads>(most, -INFINITY, [](float a, float b) { return fmaxf(a, b); });
  }

  int32_t firstAt(float logit) const {
    int32_t first = 0x7FFFFFFF;
    for (uint32_t id = threadIdx.x; id < Vocabulary; id += Threads)
      if (logits_[id] == logit && int32_t(id) < first)
        first = int32_t(id);
    return blockReduce<Threads>(first, 0x7FFFFFFF, [](int32_t a, int32_t b) { return a < b ? a : b; });
  }

  /// The largest key up to `most` at which `reaches(key)`, which holds for all lower ones, holds; at
  /// least 1.
  template <class Reaches> uint32_t highestKey(uint32_t most, Reaches reaches) const {
    uint32_t key = 0;
    for (uint32_t bit = 0x80000000; bit > 0; bit >>= 1)
      if ((key | bit) <= most && reaches(key | bit))
        key |= bit;
    return key > 0 ? key : 1;
  }

  /// The `count` likeliest tokens; there are more.
  ///
  /// As many threads as that have seen a token at or above the count'th largest of the threads'
  /// maxima, so the cut lies there or above. Few tokens do, but where many are equal.
  Cut likeliest(uint32_t count) const {
    if (count > Threads)
      return likeliestOfMany(count);
    uint32_t own = 0;
    for (uint32_t id = threadIdx.x; id < Vocabulary; id += Threads)
      if (uint32_t key = keyOf(logits_[id]); key > own)
        own = key;
    uint32_t bound = 0;
    for (uint32_t bit = 0x80000000; bit > 0; bit >>= 1)
      if (uint32_t(__syncthreads_count(own >= (bound | bit))) >= count)
        bound |= bit;

    __shared__ uint32_t keys[Threads];
    __shared__ uint32_t found;
    if (threadIdx.x == 0)
      found = 0;
    __syncthreads();
    for (uint32_t id = threadIdx.x; id < Vocabulary; id += Threads)
      if (uint32_t key = keyOf(logits_[id]); key >= bound && key > 0)
        if (uint32_t place = atomicAdd(&found, 1); place < Threads)
          keys[place] = key;
    __syncthreads();
    uint32_t candidates = found;
    own = threadIdx.x < candidates && threadIdx.x < Threads ? keys[threadIdx.x] : 0;
    __syncthreads();
    if (candidates > Threads || candidates < count)
      return likeliestOfMany(count);
    uint32_t key = 0;
    for (uint32_t bit = 0x80000000; bit > 0; bit >>= 1)
      if (uint32_t(__syncthreads_count(own >= (key | bit))) >= count)
        key |= bit;
    uint32_t above = uint32_t(__syncthreads_count(own > key));
    uint32_t ties = uint32_t(__syncthreads_count(own == key));
    if (above + ties == count)
      return {key, 0x7FFFFFFF};
    return {key, idOfTie(key, count - above)};
  }

  Cut likeliestOfMany(uint32_t count) const {
    uint32_t key = highestKey(0xFFFFFFFF, [&](uint32_t least) {
      return total([&](float logit, int32_t) { return uint32_t(keyOf(logit) >= least); }) >= count;
    });
    uint32_t above = total([&](float logit, int32_t) { return uint32_t(keyOf(logit) > key); });
    return {key, idOfTie(key, count - above)};
  }

  /// The id of the `number`th token (from 1) at `key`, in order of ids, or the last.
  int32_t idOfTie(uint32_t key, uint32_t number) const {
    uint32_t first = threadIdx.x * part, ties = 0;
    for (uint32_t id = first; id < first + part && id < Vocabulary; ++id)
      ties += keyOf(logits_[id]) == key;
    uint32_t before = sumBefore(ties);
    __shared__ int32_t found;
    if (threadIdx.x == 0)
      found = 0x7FFFFFFF;
    __syncthreads();
    if (before < number && number <= before + ties)
      for (uint32_t id = first; id < first + part; ++id)
        if (keyOf(logits_[id]) == key && ++before == number) {
          found = int32_t(id);
          break;
        }
    __syncthreads();
    int32_t result = found;
    __syncthreads();
    return result;
  }

  /// Sum of the values of the threads before this one, in order.
  template <class T> T sumBefore(T value) const {
    __shared__ T values[Threads];
    __shared__ T warps[Threads / warpThreads];
    values[threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.x % warpThreads == 0) {
      T sum = 0;
      for (uint32_t i = 0; i < warpThreads; ++i) {
        T next = values[threadIdx.x + i];
        values[threadIdx.x + i] = sum;
        sum += next;
      }
      warps[threadIdx.x / warpThreads] = sum;
    }
    __syncthreads();
    T sum = 0;
    for (uint32_t w = 0; w < threadIdx.x / warpThreads; ++w)
      sum += warps[w];
    sum += values[threadIdx.x];
    __syncthreads();
    return sum;
  }

  /// Walks the tokens by increasing id: the first at which the running sum of weights exceeds
  /// uniform * their sum; were rounding to leave none, the last with a weight.
  template <class Weight> int32_t draw(double uniform, Weight weight) const {
    uint32_t first = threadIdx.x * part;
    double own = 0;
    int32_t lastWithWeight = -1;
    for (uint32_t id = first; id < first + part && id < Vocabulary; ++id) {
      float w = weight(logits_[id], int32_t(id));
      own += double(w);
      if (w > 0)
        lastWithWeight = int32_t(id);
    }
    double before = sumBefore(own);
    __shared__ double sum;
    __shared__ int32_t found, last;
    if (threadIdx.x == Threads - 1)
      sum = before + own;
    if (threadIdx.x == 0) {
      found = 0x7FFFFFFF;
      last = 0;
    }
    __syncthreads();
    atomicMax(&last, lastWithWeight);
    double target = uniform * sum;
    if (before <= target && before + own > target)
      for (uint32_t id = first; id < first + part && id < Vocabulary; ++id) {
        before += double(weight(logits_[id], int32_t(id)));
        if (before > target) {
          atomicMin(&found, int32_t(id));
          break;
        }
      }
    __syncthreads();
    int32_t result = found == 0x7FFFFFFF ? last : found;
    __syncthreads();
    return result;
  }

private:
  const float *logits_;
};

struct RowParameters {
  float temperature;
  int32_t topK;
  float topP;
  float minP;
  uint64_t seed;
  uint64_t position;
};

/// Uniform in [0, 1): see uniformAt() of Sampler.h.
inline double uniformOf(const RowParameters &parameters) {
  auto words = philox4x32({uint32_t(parameters.position), uint32_t(parameters.position >> 32), 0, 0},
                          {uint32_t(parameters.seed), uint32_t(parameters.seed >> 32)});
  return double((uint64_t(words[1]) << 32 | words[0]) >> 11) * 0x1p-53;
}

/// The id for a temperature above 0. `numbers`: logits that are not NaN.
template <class Sampler>
inline int32_t sampleId(const Sampler &sampler, const RowParameters &parameters, float largest,
                        uint32_t numbers) {
  Cut topK;
  if (parameters.topK > 0 && uint32_t(parameters.topK) < numbers)
    topK = sampler.likeliest(uint32_t(parameters.topK));
  float temperature = fminf(parameters.temperature, 3.402823466e38f);
  auto weightOf = [&](float logit) { return exponential(distance(logit, largest) / temperature); };
  auto weight = [&](float logit, int32_t id) {
    return topK.keeps(keyOf(logit), id) ? weightOf(logit) : 0.0f;
  };

  Cut topP;
  if (parameters.topP < 1.0f) {
    double enough = double(fmaxf(parameters.topP, 0.0f)) *
                    sampler.total([&](float l, int32_t id) { return double(weight(l, id)); });
    uint32_t key = sampler.highestKey(keyOf(largest), [&](uint32_t least) {
      return sampler.total([&](float l, int32_t id) {
               return keyOf(l) >= least ? double(weight(l, id)) : 0.0;
             }) >= enough;
    });
    double above = sampler.total([&](float l, int32_t id) {
      return keyOf(l) > key ? double(weight(l, id)) : 0.0;
    });
    // All at the key weigh the same: as many of them as it takes, one at least.
    uint32_t bits = key & 0x80000000 ? key & 0x7FFFFFFF : ~key;
    double each = double(weightOf(__uint_as_float(bits)));
    double needed = each > 0 ? ceil((enough - above) / each) : 1.0;
    uint32_t number = needed < 1 ? 1 : needed < 2147483647.0 ? uint32_t(needed) : 0x7FFFFFFF;
    topP = {key, sampler.idOfTie(key, number)};
  }
  float minP = parameters.minP > 0.0f ? fminf(parameters.minP, 1.0f) : 0.0f;
  return sampler.draw(uniformOf(parameters), [&](float logit, int32_t id) {
    float w = topP.keeps(keyOf(logit), id) ? weight(logit, id) : 0.0f;
    return w >= minP ? w : 0.0f;
  });
}

namespace sampling {
enum Slot {
  Logits,
  ValidHeadRows,
  HeadSequence,
  SequenceSlot,
  SequenceLength,
  Temperature,
  TopK,
  TopP,
  MinP,
  Seed,
  RepetitionPenalty,
  PresencePenalty,
  FrequencyPenalty,
  PenaltyWindow,
  LastId,
  History,
  BiasCount,
  BiasId,
  BiasValue,
  IsMasked,
  Mask,
  Id,
  LogProbability,
  TopId,
  TopLogProbability,
  Scratch
};
constexpr uint32_t slotCount = 29;
} // namespace sampling

/// Entries of a sequence's biases in the table: maxLogitBiases of Sampler.h.
constexpr uint32_t biasEntries = 512;

/// The row's logits after penalties, bias and mask (NaN where one takes no part), in the row's own
/// scratch; the logits themselves where nothing changes them.
template <class K>
inline const float *adjustedLogits(const Slots<sampling::slotCount> &slots, const float *logits,
                                   int32_t sequence, uint32_t slot, uint32_t length) {
  using namespace sampling;
  float repetition = slots.pointer<const float>(RepetitionPenalty)[sequence];
  float presence = slots.pointer<const float>(PresencePenalty)[sequence];
  float frequency = slots.pointer<const float>(FrequencyPenalty)[sequence];
  int32_t biases = slots.pointer<const int32_t>(BiasCount)[slot];
  bool isMasked = slots.pointer<const int32_t>(IsMasked)[slot] != 0;
  bool hasPenalties = (repetition != 1.0f || presence != 0.0f || frequency != 0.0f) && length > 0;
  if (!hasPenalties && biases == 0 && !isMasked)
    return logits;

  auto *adjusted = reinterpret_cast<float *>(slots.pointer<uint8_t>(Scratch) +
                                             blockIdx.x * K::scratch_stride);
  auto *counts = reinterpret_cast<int32_t *>(adjusted + K::vocabulary);
  for (uint32_t id = threadIdx.x; id < K::vocabulary; id += K::threads) {
    adjusted[id] = logits[id];
    counts[id] = 0;
  }
  __syncthreads();
  if (hasPenalties) {
    int32_t window = slots.pointer<const int32_t>(PenaltyWindow)[sequence];
    uint32_t first = window > 0 && uint32_t(window) < length ? length - uint32_t(window) : 0;
    auto *history = slots.pointer<const int32_t>(History) + uint64_t(slot) * K::context;
    for (uint32_t i = first + threadIdx.x; i < length; i += K::threads)
      if (uint32_t(history[i]) < K::vocabulary)
        atomicAdd(counts + history[i], 1);
    __syncthreads();
    for (uint32_t id = threadIdx.x; id < K::vocabulary; id += K::threads)
      if (int32_t count = counts[id]; count > 0) {
        float logit = adjusted[id];
        logit = logit > 0.0f ? logit / repetition : logit * repetition;
        adjusted[id] = logit - (float(count) * frequency + presence);
      }
    __syncthreads();
  }
  // An id's entries are added by the thread of its first, in order.
  auto *biasId = slots.pointer<const int32_t>(BiasId) + uint64_t(slot) * biasEntries;
  auto *biasValue = slots.pointer<const float>(BiasValue) + uint64_t(slot) * biasEntries;
  for (int32_t i = threadIdx.x; i < biases; i += K::threads) {
    int32_t id = biasId[i];
    bool isFirst = uint32_t(id) < K::vocabulary;
    for (int32_t before = 0; before < i; ++before)
      isFirst = isFirst && biasId[before] != id;
    if (!isFirst)
      continue;
    float logit = adjusted[id];
    for (int32_t each = i; each < biases; ++each)
      if (biasId[each] == id)
        logit += biasValue[each];
    adjusted[id] = logit;
  }
  __syncthreads();
  if (isMasked) {
    constexpr uint32_t words = (K::vocabulary + 31) / 32;
    auto *mask = slots.pointer<const uint32_t>(Mask) + uint64_t(slot) * words;
    for (uint32_t id = threadIdx.x; id < K::vocabulary; id += K::threads)
      if ((mask[id / 32] >> id % 32 & 1) == 0)
        adjusted[id] = __int_as_float(0x7FC00000);
    __syncthreads();
  }
  return adjusted;
}

template <class K> inline void sample(const Slots<sampling::slotCount> &slots) {
  using namespace sampling;
  awaitPredecessor();
  uint32_t row = blockIdx.x, rows = *slots.valid;
  if (row >= rows)
    return;
  const float *logits = slots.pointer<const float>(Logits) + uint64_t(row) * K::vocabulary;
  auto *headSequence = slots.pointer<const int32_t>(HeadSequence);
  int32_t sequence = headSequence[row];
  RowParameters parameters = {
      slots.pointer<const float>(Temperature)[sequence],
      slots.pointer<const int32_t>(TopK)[sequence],
      slots.pointer<const float>(TopP)[sequence],
      slots.pointer<const float>(MinP)[sequence],
      slots.pointer<const uint64_t>(Seed)[sequence],
      uint64_t(slots.pointer<const int32_t>(SequenceLength)[sequence]),
  };
  auto slot = uint32_t(slots.pointer<const int32_t>(SequenceSlot)[sequence]);

  using Sampler = RowSampler<K::vocabulary, K::threads>;
  Sampler sampler(logits);
  auto isNumber = [](float logit, int32_t) { return uint32_t(logit == logit); };
  uint32_t numbers = sampler.total(isNumber);
  float largest = sampler.largest();
  int32_t id = 0;
  float logProbability = __int_as_float(0x7FC00000);
  if (numbers > 0) {
    double logSum = logarithm(sampler.total(
        [&](float logit, int32_t) { return double(exponential(distance(logit, largest))); }));
    const float *adjusted =
        adjustedLogits<K>(slots, logits, sequence, slot, uint32_t(parameters.position));
    Sampler candidates(adjusted);
    uint32_t count = adjusted == logits ? numbers : candidates.total(isNumber);
    float likeliest = adjusted == logits ? largest : candidates.largest();
    if (count > 0) {
      id = parameters.temperature > 0.0f ? sampleId(candidates, parameters, likeliest, count)
                                         : candidates.firstAt(likeliest);
      logProbability = float(double(distance(logits[id], largest)) - logSum);
    }
  }
  if (threadIdx.x == 0) {
    bool isLast = true; // a sequence goes on from its last head row
    for (uint32_t later = row + 1; later < rows; ++later)
      isLast = isLast && headSequence[later] != sequence;
    if (isLast) {
      slots.pointer<int32_t>(LastId)[slot] = id;
      if (parameters.position < K::context) // a full context has no place for it
        slots.pointer<int32_t>(History)[uint64_t(slot) * K::context + parameters.position] = id;
    }
    slots.pointer<int32_t>(Id)[row] = id;
    slots.pointer<float>(LogProbability)[row] = logProbability;
  }

  // The likeliest, ordered by how many of them come before each.
  __shared__ uint32_t keys[reportedTokens];
  __shared__ int32_t ids[reportedTokens];
  __shared__ uint32_t count;
  Cut reported;
  if (numbers > reportedTokens)
    reported = sampler.likeliest(reportedTokens);
  if (threadIdx.x == 0)
    count = 0;
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < K::vocabulary; i += K::threads)
    if (uint32_t key = keyOf(logits[i]); reported.keeps(key, int32_t(i))) {
      uint32_t place = atomicAdd(&count, 1);
      keys[place] = key;
      ids[place] = int32_t(i);
    }
  __syncthreads();
  if (threadIdx.x >= reportedTokens)
    return;
  int32_t *topId = slots.pointer<int32_t>(TopId) + row * reportedTokens;
  float *topLogProbability = slots.pointer<float>(TopLogProbability) + row * reportedTokens;
  if (threadIdx.x >= count) {
    topId[threadIdx.x] = -1;
    topLogProbability[threadIdx.x] = -INFINITY;
    return;
  }
  uint32_t key = keys[threadIdx.x], place = 0;
  int32_t own = ids[threadIdx.x];
  for (uint32_t i = 0; i < count; ++i)
    place += keys[i] > key || (keys[i] == key && ids[i] < own);
  // The same normaliser as the drawn id's, so that it has the same number in both reports.
  double normaliser = double(logits[id]) - double(logProbability);
  topId[place] = own;
  topLogProbability[place] = float(double(logits[own]) - normaliser);
}

} // namespace strata
