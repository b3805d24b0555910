// sample: draws one id a head row and reports it with the likeliest tokens.
//
// Compiled once, for every CPU: the choice itself is the runtime's sampler.
#include "codegen/cpu/Sample.h"

#include <cmath>
#include <limits>

#include "runtime/sampling/Sampler.h"

namespace strata::cpu {
namespace {

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
  LastId,
  Id,
  LogProbability,
  TopId,
  TopLogProbability,
  Scratch,
  ScratchStride,
  Vocabulary
};

template <class T> T *pointerAt(const uint64_t *slots, Slot slot) {
  return reinterpret_cast<T *>(slots[slot]);
}

/// Whether no later head row is of the same sequence: rows run on any worker, so one alone may
/// store what the sequence goes on from.
bool isLastOfSequence(const uint64_t *slots, uint32_t row) {
  auto *sequences = pointerAt<const int32_t>(slots, HeadSequence);
  for (uint32_t later = row + 1; later < *pointerAt<const uint32_t>(slots, ValidHeadRows); ++later)
    if (sequences[later] == sequences[row])
      return false;
  return true;
}

/// The `reportedTokens` largest logits, largest first, ties to the lower id; NaN is passed over.
struct Likeliest {
  float logit[reportedTokens];
  int32_t id[reportedTokens];
  uint32_t count = 0;

  void insert(float value, int32_t token) {
    uint32_t place = count < reportedTokens ? count++ : reportedTokens - 1;
    for (; place > 0 && logit[place - 1] < value; --place) {
      logit[place] = logit[place - 1];
      id[place] = id[place - 1];
    }
    logit[place] = value;
    id[place] = token;
  }
};

void sample(const uint64_t *slots, uint32_t begin, uint32_t end, uint32_t worker) {
  uint64_t vocabulary = slots[Vocabulary];
  auto *scratch =
      reinterpret_cast<SamplingScratch *>(slots[Scratch] + worker * slots[ScratchStride]);
  for (uint32_t row = begin; row < end; ++row) {
    std::span logits(pointerAt<const float>(slots, Logits) + row * vocabulary, vocabulary);
    auto sequence = uint32_t(pointerAt<const int32_t>(slots, HeadSequence)[row]);
    SamplingParameters parameters = {
        .temperature = pointerAt<const float>(slots, Temperature)[sequence],
        .topK = pointerAt<const int32_t>(slots, TopK)[sequence],
        .topP = pointerAt<const float>(slots, TopP)[sequence],
        .minP = pointerAt<const float>(slots, MinP)[sequence],
        .seed = pointerAt<const uint64_t>(slots, Seed)[sequence],
    };
    auto position = uint64_t(pointerAt<const int32_t>(slots, SequenceLength)[sequence]);
    TokenChoice choice = sampleToken(logits, parameters, position, {scratch, vocabulary});

    if (isLastOfSequence(slots, row))
      pointerAt<int32_t>(slots, LastId)[pointerAt<const int32_t>(slots, SequenceSlot)[sequence]] =
          choice.id;
    pointerAt<int32_t>(slots, Id)[row] = choice.id;
    pointerAt<float>(slots, LogProbability)[row] = choice.logProbability;

    Likeliest likeliest;
    for (uint64_t i = 0; i < vocabulary; ++i)
      if (likeliest.count < reportedTokens ? !std::isnan(logits[i])
                                           : logits[i] > likeliest.logit[reportedTokens - 1])
        likeliest.insert(logits[i], int32_t(i));
    // The sampler's own normaliser, so that the drawn id has the same number in both reports.
    double normaliser = double(logits[choice.id]) - double(choice.logProbability);
    int32_t *topId = pointerAt<int32_t>(slots, TopId) + row * reportedTokens;
    float *topLogProbability = pointerAt<float>(slots, TopLogProbability) + row * reportedTokens;
    for (uint32_t i = 0; i < reportedTokens; ++i) {
      bool present = i < likeliest.count;
      topId[i] = present ? likeliest.id[i] : -1;
      topLogProbability[i] = present ? float(double(likeliest.logit[i]) - normaliser)
                                     : -std::numeric_limits<float>::infinity();
    }
  }
}

constexpr KernelEntry entries[] = {{"sample", sample}};

} // namespace

KernelList sampleKernels() { return {entries, 1}; }

} // namespace strata::cpu
