// sample: draws one id a head row and reports it with the likeliest tokens.
//
// Compiled once, for every CPU: the choice itself is the runtime's sampler.
#include "codegen/cpu/Sample.h"

#include <cmath>
#include <limits>

#include "codegen/kernels/SampleSlots.h"
#include "runtime/sampling/Sampler.h"

namespace strata::cpu {
namespace {

using namespace sampling;

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

SamplingParameters parametersOf(const uint64_t *slots, uint32_t sequence) {
  return {
      .temperature = pointerAt<const float>(slots, Temperature)[sequence],
      .topK = pointerAt<const int32_t>(slots, TopK)[sequence],
      .topP = pointerAt<const float>(slots, TopP)[sequence],
      .minP = pointerAt<const float>(slots, MinP)[sequence],
      .seed = pointerAt<const uint64_t>(slots, Seed)[sequence],
      .repetitionPenalty = pointerAt<const float>(slots, RepetitionPenalty)[sequence],
      .presencePenalty = pointerAt<const float>(slots, PresencePenalty)[sequence],
      .frequencyPenalty = pointerAt<const float>(slots, FrequencyPenalty)[sequence],
      .penaltyWindow = pointerAt<const int32_t>(slots, PenaltyWindow)[sequence],
  };
}

/// What the tables hold for sequence slot `at`, `length` tokens long.
SamplingContext contextOf(const uint64_t *slots, uint64_t at, uint64_t length) {
  uint64_t biases = uint64_t(pointerAt<const int32_t>(slots, BiasCount)[at]);
  uint64_t words = maskWords(slots[Vocabulary]);
  SamplingContext context;
  context.tokens = {pointerAt<const int32_t>(slots, History) + at * slots[Context], length};
  context.biasIds = {pointerAt<const int32_t>(slots, BiasId) + at * maxLogitBiases, biases};
  context.biasValues = {pointerAt<const float>(slots, BiasValue) + at * maxLogitBiases, biases};
  if (pointerAt<const int32_t>(slots, IsMasked)[at])
    context.allowed = {pointerAt<const uint32_t>(slots, Mask) + at * words, words};
  return context;
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
    auto at = uint64_t(pointerAt<const int32_t>(slots, SequenceSlot)[sequence]);
    auto position = uint64_t(pointerAt<const int32_t>(slots, SequenceLength)[sequence]);
    TokenChoice choice = sampleToken(logits, parametersOf(slots, sequence), position,
                                     {scratch, vocabulary}, contextOf(slots, at, position));

    if (isLastOfSequence(slots, row)) {
      pointerAt<int32_t>(slots, LastId)[at] = choice.id;
      // A full context has no place for it, and no step that would read it.
      if (position < slots[Context])
        pointerAt<int32_t>(slots, History)[at * slots[Context] + position] = choice.id;
    }
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
