// The slots of `sample` by their places in its signature (Signatures.cpp), for every kind of
// device.
#pragma once

namespace strata::sampling {

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
  Scratch,
  ScratchStride,
  Vocabulary,
  Context
};

} // namespace strata::sampling
