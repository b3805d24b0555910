#include "runtime/stage/Flow.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace strata {

Flow::Flow(uint32_t stages, std::vector<Edge> edges, uint32_t sequences)
    : stages_(stages), edges_(std::move(edges)), periods_(stages, 1), ended_(stages),
      drawn_(sequences), returning_(launchesInFlight(stages)) {
  for (const Edge &edge : edges_)
    for (uint32_t stage : {edge.producer, edge.consumer})
      periods_[stage] = std::lcm(periods_[stage], edge.slots);
  if (stages > 1)
    edges_.push_back({stages - 1, 0, idSlots(stages)});
}

void Flow::submit(const Step &step, Shape shape, std::span<const bool> runs, std::span<Leg> legs) {
  assert(!isFull());
  bool isReturning = step.returnsIds && shape.head;
  for (uint32_t stage = 0; stage < stages_; ++stage) {
    Leg &leg = legs[stage];
    leg.runs = runs[stage];
    leg.waits.clear();
    leg.signals.clear();
    leg.idsFrom = leg.idsTo = -1;
    if (!leg.runs)
      continue;
    leg.handoffNumber = uint32_t(bodies_ % periods_[stage]);
    if (shape.body)
      passHandoffs(stage, leg);
    if (returnsIds() && stage == 0 && shape.body)
      readIds(step, leg);
    if (returnsIds() && stage + 1 == stages_ && isReturning)
      returnIds(leg);
    leg.signals.push_back({ended(stage), uint32_t(++ended_[stage])});
  }
  // Heads of one step may be several launches, of which the last returns the ids of all.
  for (uint32_t i = 0; shape.head && i < step.validHeadRows; ++i)
    drawn_[uint32_t(step.sequenceSlot[uint32_t(step.headSequence[i])])] = idsSubmitted_ + 1;
  returning_[submitted_++ % returning_.size()] = isReturning;
  bodies_ += shape.body;
  idsSubmitted_ += isReturning;
}

// Values wrap around with 32 bits; waits compare them by their distance.
void Flow::passHandoffs(uint32_t stage, Leg &leg) const {
  for (uint32_t e = 0; e < edges_.size() - returnsIds(); ++e) {
    const Edge &edge = edges_[e];
    if (edge.consumer == stage) {
      leg.waits.push_back({filled(e), uint32_t(bodies_ + 1)});
      leg.signals.push_back({freed(e), uint32_t(bodies_ + 1)});
    }
    if (edge.producer == stage) {
      if (bodies_ >= edge.slots)
        leg.waits.push_back({freed(e), uint32_t(bodies_ + 1 - edge.slots)});
      leg.signals.push_back({filled(e), uint32_t(bodies_ + 1)});
    }
  }
}

// Each slot holds the ids last sampled for all sequences, so that a newer one stands for all before
// it. A body reads the newest that it needs, that the host knows of or that was read before, and
// frees those before. That the last stage finds a slot free follows: when a step is submitted,
// those that filled the slots before the newest launchesInFlight() have retired, so that its own
// body frees them.
void Flow::readIds(const Step &step, Leg &leg) {
  uint64_t needed = 0;
  bool needsAny = false;
  for (uint32_t row = 0; row < step.validRows; ++row) {
    if (step.rowId[row] >= 0)
      continue;
    needsAny = true;
    uint64_t drawn = drawn_[uint32_t(step.sequenceSlot[uint32_t(step.rowSequence[row])])];
    needed = std::max(needed, std::min(drawn, idsSubmitted_));
  }
  idsRead_ = std::max({idsRead_, needed, idsRetired_});
  if (idsRead_ == 0)
    return;
  if (needsAny) {
    leg.waits.push_back({filled(idsEdge()), uint32_t(idsRead_)});
    leg.idsFrom = int32_t((idsRead_ - 1) % edges_[idsEdge()].slots);
  }
  leg.signals.push_back({freed(idsEdge()), uint32_t(idsRead_ - 1)});
}

void Flow::returnIds(Leg &leg) const {
  uint32_t slots = edges_[idsEdge()].slots;
  if (idsSubmitted_ >= slots)
    leg.waits.push_back({freed(idsEdge()), uint32_t(idsSubmitted_ + 1 - slots)});
  leg.signals.push_back({filled(idsEdge()), uint32_t(idsSubmitted_ + 1)});
  leg.idsTo = int32_t(idsSubmitted_ % slots);
}

void Flow::retire() {
  assert(inFlight() > 0);
  idsRetired_ += returning_[retired_++ % returning_.size()];
}

Flow::TimelineKind Flow::kindOf(uint32_t timeline, uint32_t &of) const {
  auto handoffs = 2 * uint32_t(edges_.size());
  of = timeline < handoffs ? timeline / 2 : timeline - handoffs;
  if (timeline >= handoffs)
    return TimelineKind::Ended;
  return timeline % 2 == 0 ? TimelineKind::Filled : TimelineKind::Freed;
}

} // namespace strata
