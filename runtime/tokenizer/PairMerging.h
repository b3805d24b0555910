// The merging loop that both kinds of byte-pair encoding share: always the adjacent pair of the
// best priority, the leftmost of equals, in O(n log n).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace strata {

constexpr uint32_t noPriority = std::numeric_limits<uint32_t>::max();

/// What two adjacent symbols would become.
struct PairMerge {
  uint32_t priority = noPriority; ///< Lower merges earlier; noPriority: never.
  int32_t id = -1;
};

/// A symbol of a piece; symbols that were merged into their left neighbour stay in place, unlinked.
struct MergeSymbol {
  uint32_t begin; ///< Byte offset in the piece; a symbol reaches to the begin of the next.
  int32_t id;     ///< -1: no token has this text.
  uint32_t previous = 0, next = 0; ///< Indices; the last symbol's `next` is the number of symbols.
  PairMerge pair{};                ///< With the symbol at `next`.
};

/// Working memory of the loop, kept between pieces so that short pieces allocate nothing.
class PairMerging {
public:
  /// Fill these for a piece: `begin` and `id` only.
  std::vector<MergeSymbol> symbols;

  /// Merges until nothing can be. `pairOf(left, right, end)` says what two neighbours become, where
  /// `end` is the byte at which the right one ends; `merged(left, right, end)` is told of every
  /// merge before it happens.
  template <class PairOf, class Merged>
  void run(uint32_t pieceBytes, const PairOf &pairOf, const Merged &merged);

  /// Visits what is left, from the left: visit(symbol, end byte).
  template <class Visit> void forEach(uint32_t pieceBytes, const Visit &visit) const {
    for (uint32_t i = 0; i < symbols.size(); i = symbols[i].next)
      visit(symbols[i], endOf(symbols[i], pieceBytes));
  }

private:
  uint32_t endOf(const MergeSymbol &symbol, uint32_t pieceBytes) const {
    return symbol.next < symbols.size() ? symbols[symbol.next].begin : pieceBytes;
  }

  std::vector<uint64_t> heap_; ///< priority << 32 | index of the left symbol, least first.
};

template <class PairOf, class Merged>
void PairMerging::run(uint32_t pieceBytes, const PairOf &pairOf, const Merged &merged) {
  auto count = uint32_t(symbols.size());
  auto computePair = [&](uint32_t left) {
    MergeSymbol &symbol = symbols[left];
    symbol.pair = {};
    if (symbol.next < count) {
      const MergeSymbol &right = symbols[symbol.next];
      symbol.pair = pairOf(symbol, right, endOf(right, pieceBytes));
    }
    return symbol.pair.priority != noPriority;
  };
  auto keyOf = [&](uint32_t left) { return uint64_t(symbols[left].pair.priority) << 32 | left; };

  heap_.clear();
  for (uint32_t i = 0; i < count; ++i) {
    symbols[i].previous = i - 1;
    symbols[i].next = i + 1;
  }
  for (uint32_t i = 0; i < count; ++i)
    if (computePair(i))
      heap_.push_back(keyOf(i));
  std::make_heap(heap_.begin(), heap_.end(), std::greater<>());

  auto push = [&](uint32_t left) {
    if (!computePair(left))
      return;
    heap_.push_back(keyOf(left));
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  };
  while (!heap_.empty()) {
    auto left = uint32_t(heap_.front());
    auto priority = uint32_t(heap_.front() >> 32);
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    // An entry is stale where the pair has changed. One that is stale but of the same priority as
    // the pair that stands there now is as good as that pair's own entry.
    MergeSymbol &symbol = symbols[left];
    if (symbol.pair.priority != priority)
      continue;
    MergeSymbol &right = symbols[symbol.next];
    merged(symbol, right, endOf(right, pieceBytes));
    symbol.id = symbol.pair.id;
    symbol.next = right.next;
    right.pair = {};
    if (symbol.next < count)
      symbols[symbol.next].previous = left;
    push(left);
    if (left > 0)
      push(symbol.previous);
  }
}

} // namespace strata
