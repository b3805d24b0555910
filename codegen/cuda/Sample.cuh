// sample: draws one id a head row, by the specification of runtime/sampling/Sampler.h, and reports it
// with the likeliest tokens.
//
// The blocks of a cluster share out a row (SampleRow.cuh) and pass over it: once for the largest and
// once for the sum, a few times for the likeliest tokens, and some thirty times for top-k or top-p (a
// binary search over the bits of a logit, counting or weighing what is at least as likely). The order
// of sums is not that of the host's sampler, so a draw can differ from the host's where the running
// sum comes within 1e-13 of its bound.
#pragma once

#include "codegen/cuda/SampleRow.cuh"
#include "codegen/kernels/SampleSlots.h"
#include "runtime/sampling/Elementary.h"
#include "runtime/sampling/Philox.h"

namespace strata {

constexpr uint32_t reportedTokens = 20;

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

constexpr uint32_t sampleSlots = sampling::Context + 1;

/// Entries of a sequence's biases in the table: maxLogitBiases of Sampler.h.
constexpr uint32_t biasEntries = 512;

/// The row's logits after penalties, bias and mask (NaN where one takes no part), in the row's own
/// scratch; the logits themselves where nothing changes them. Ids from `begin` to `end`, which are
/// the block's.
template <class K>
inline const float *adjustedLogits(const Slots<sampleSlots> &slots, const float *logits,
                                   int32_t sequence, uint32_t slot, uint32_t length, uint32_t begin,
                                   uint32_t end) {
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
  for (uint32_t id = begin + threadIdx.x; id < end; id += K::threads) {
    adjusted[id] = logits[id];
    counts[id] = 0;
  }
  __syncthreads();
  if (hasPenalties) {
    int32_t window = slots.pointer<const int32_t>(PenaltyWindow)[sequence];
    uint32_t first = window > 0 && uint32_t(window) < length ? length - uint32_t(window) : 0;
    auto *history = slots.pointer<const int32_t>(History) + uint64_t(slot) * K::context;
    for (uint32_t i = first + threadIdx.x; i < length; i += K::threads)
      if (uint32_t id = uint32_t(history[i]); id >= begin && id < end)
        atomicAdd(counts + history[i], 1);
    __syncthreads();
    for (uint32_t id = begin + threadIdx.x; id < end; id += K::threads)
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
    bool isFirst = uint32_t(id) >= begin && uint32_t(id) < end;
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
    for (uint32_t id = begin + threadIdx.x; id < end; id += K::threads)
      if ((mask[id / 32] >> id % 32 & 1) == 0)
        adjusted[id] = __int_as_float(0x7FC00000);
    __syncthreads();
  }
  return adjusted;
}

template <class K> inline void sample(const Slots<sampleSlots> &slots) {
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
  __shared__ uint64_t exchange[2];
  Cluster<K::threads> cluster(exchange);
  Sampler sampler(cluster, logits);
  auto isNumber = [](float logit, int32_t) { return uint32_t(logit == logit); };
  uint32_t numbers = sampler.total(isNumber);
  float largest = sampler.largest();
  __shared__ typename Sampler::template Ranking<reportedTokens> ranking;
  sampler.rank(ranking);
  int32_t id = 0;
  float logProbability = __int_as_float(0x7FC00000);
  if (numbers > 0) {
    double logSum = logarithm(sampler.total(
        [&](float logit, int32_t) { return double(exponential(distance(logit, largest))); }));
    constexpr uint32_t share = Sampler::part * K::threads;
    uint32_t begin = cluster.rank() * share, end = begin + share;
    const float *adjusted =
        adjustedLogits<K>(slots, logits, sequence, slot, uint32_t(parameters.position), begin,
                          end < K::vocabulary ? end : uint32_t(K::vocabulary));
    uint32_t count = numbers;
    float likeliest = largest;
    if (adjusted != logits) {
      sampler = Sampler(cluster, adjusted);
      count = sampler.total(isNumber);
      likeliest = sampler.largest();
    }
    if (count > 0) {
      id = parameters.temperature > 0.0f ? sampleId(sampler, parameters, likeliest, count)
                                         : sampler.firstAt(likeliest);
      logProbability = float(double(distance(logits[id], largest)) - logSum);
    }
  }
  synchroniseCluster(); // what others have of this block's shared memory, they have read
  if (cluster.rank() != 0)
    return;
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
  if (threadIdx.x >= reportedTokens)
    return;
  uint32_t place = row * reportedTokens + threadIdx.x;
  bool isToken = ranking.keys[threadIdx.x] > 0;
  int32_t token = isToken ? ranking.ids[threadIdx.x] : -1;
  // The same normaliser as the drawn id's, so that it has the same number in both reports.
  double normaliser = double(logits[id]) - double(logProbability);
  slots.pointer<int32_t>(TopId)[place] = token;
  slots.pointer<float>(TopLogProbability)[place] =
      isToken ? float(double(logits[token]) - normaliser) : -INFINITY;
}

} // namespace strata
