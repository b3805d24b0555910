// One row of logits, shared out over the blocks of a cluster: sums and searches over all tokens.
//
// A thread has consecutive ids, in registers where they are few enough, so that a pass reads no
// memory. Sums are in F64 and in an order that the vocabulary alone fixes.
#pragma once

#include "codegen/cuda/Cluster.cuh"

namespace strata {

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
  /// Of a thread.
  static constexpr uint32_t part =
      ((Vocabulary + clusterBlocks * Threads - 1) / (clusterBlocks * Threads) + 3) / 4 * 4;

  RowSampler(Cluster<Threads> &cluster, const float *logits) : cluster_(&cluster), logits_(logits) {
    first_ = (cluster.rank() * Threads + threadIdx.x) * part;
    if constexpr (isKept)
#pragma unroll
      for (uint32_t i = 0; i < part; ++i)
        kept_[i] = first_ + i < Vocabulary ? logits[first_ + i] : __int_as_float(0x7FC00000);
  }

  /// Calls `body(logit, id)` for the thread's tokens by increasing id.
  template <class Body> void forEach(Body body) const {
    if constexpr (isKept) {
#pragma unroll
      for (uint32_t i = 0; i < part; ++i)
        if (first_ + i < Vocabulary)
          body(kept_[i], int32_t(first_ + i));
    } else {
      for (uint32_t id = first_; id < first_ + part && id < Vocabulary; ++id)
        body(logits_[id], int32_t(id));
    }
  }

  template <class Value> auto total(Value value) const {
    decltype(value(0.0f, 0)) sum = 0;
    forEach([&](float logit, int32_t id) { sum += value(logit, id); });
    return cluster_->sum(sum);
  }

  float largest() const {
    float most = -INFINITY;
    forEach([&](float logit, int32_t) { most = fmaxf(most, logit); }); // NaN loses
    return cluster_->reduce(most, -INFINITY, [](float a, float b) { return fmaxf(a, b); });
  }

  int32_t firstAt(float logit) const {
    int32_t first = 0x7FFFFFFF;
    forEach([&](float each, int32_t id) {
      if (each == logit && id < first)
        first = id;
    });
    return least(first);
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
  Cut likeliest(uint32_t count) const {
    uint32_t key = highestKey(0xFFFFFFFF, [&](uint32_t least) {
      return total([&](float logit, int32_t) { return uint32_t(keyOf(logit) >= least); }) >= count;
    });
    uint32_t above = total([&](float logit, int32_t) { return uint32_t(keyOf(logit) > key); });
    return {key, idOfTie(key, count - above)};
  }

  /// The id of the `number`th token (from 1) at `key`, in order of ids, or the largest number.
  int32_t idOfTie(uint32_t key, uint32_t number) const {
    uint32_t ties = 0, all = 0;
    forEach([&](float logit, int32_t) { ties += keyOf(logit) == key; });
    uint32_t before = cluster_->sumBefore(ties, all);
    int32_t found = 0x7FFFFFFF;
    forEach([&](float logit, int32_t id) {
      if (keyOf(logit) == key && ++before == number)
        found = id;
    });
    return least(found);
  }

  /// Walks the tokens by increasing id: the first at which the running sum of weights exceeds
  /// uniform * their sum; were rounding to leave none, the last with a weight.
  template <class Weight> int32_t draw(double uniform, Weight weight) const {
    double own = 0, all = 0;
    int32_t lastWithWeight = -1;
    forEach([&](float logit, int32_t id) {
      float w = weight(logit, id);
      own += double(w);
      if (w > 0)
        lastWithWeight = id;
    });
    double before = cluster_->sumBefore(own, all);
    double target = uniform * all;
    int32_t found = 0x7FFFFFFF;
    if (before <= target && before + own > target)
      forEach([&](float logit, int32_t id) {
        before += double(weight(logit, id));
        if (before > target && found == 0x7FFFFFFF)
          found = id;
      });
    found = least(found);
    int32_t last =
        cluster_->reduce(lastWithWeight, -1, [](int32_t a, int32_t b) { return a > b ? a : b; });
    return found != 0x7FFFFFFF ? found : last > 0 ? last : 0;
  }

  /// Tokens with their keys, likeliest first; key 0 where there are no more.
  template <uint32_t Count> struct Ranking {
    uint32_t keys[Count];
    int32_t ids[Count];
  };

  /// The `Count` likeliest tokens of the row, in the first block's `ranking`, which is in every
  /// block's shared memory.
  ///
  /// As many threads of a block as that have seen a token at or above the Count'th largest of the
  /// threads' maxima, so only tokens from there on can be among the block's likeliest. They are few,
  /// but where many are equal: then the row is cut exactly.
  template <uint32_t Count> void rank(Ranking<Count> &ranking) const {
    uint32_t own = 0, bound = 0;
    forEach([&](float logit, int32_t) {
      if (uint32_t key = keyOf(logit); key > own)
        own = key;
    });
    for (uint32_t bit = 0x80000000; bit > 0; bit >>= 1)
      if (uint32_t(__syncthreads_count(own >= (bound | bit))) >= Count)
        bound |= bit;
    __shared__ Ranking<Threads> candidates;
    __shared__ uint32_t found;
    auto collect = [&](const Cut &cut) {
      if (threadIdx.x == 0)
        found = 0;
      __syncthreads();
      forEach([&](float logit, int32_t id) {
        uint32_t key = keyOf(logit);
        if (!cut.keeps(key, id))
          return;
        if (uint32_t place = atomicAdd(&found, 1); place < Threads) {
          candidates.keys[place] = key;
          candidates.ids[place] = id;
        }
      });
      __syncthreads();
    };
    collect({bound > 0 ? bound : 1});
    if (cluster_->reduce(found, 0u, [](uint32_t a, uint32_t b) { return a > b ? a : b; }) > Threads)
      collect(likeliest(Count));
    __shared__ Ranking<Count> block;
    order(block, candidates, found);
    synchroniseCluster();
    constexpr uint32_t all = clusterBlocks * Count;
    static_assert(all <= Threads);
    if (threadIdx.x < all) {
      candidates.keys[threadIdx.x] = readShared(block.keys + threadIdx.x % Count, threadIdx.x / Count);
      candidates.ids[threadIdx.x] = readShared(block.ids + threadIdx.x % Count, threadIdx.x / Count);
    }
    synchroniseCluster();
    order(ranking, candidates, all);
  }

private:
  static constexpr bool isKept = part <= 32;

  int32_t least(int32_t value) const {
    return cluster_->reduce(value, 0x7FFFFFFF, [](int32_t a, int32_t b) { return a < b ? a : b; });
  }

  /// The first of `count` tokens by how many come before each; those with key 0 are none.
  template <uint32_t Count>
  static void order(Ranking<Count> &to, const Ranking<Threads> &from, uint32_t count) {
    if (threadIdx.x < Count) {
      to.keys[threadIdx.x] = 0;
      to.ids[threadIdx.x] = -1;
    }
    __syncthreads();
    uint32_t key = threadIdx.x < count ? from.keys[threadIdx.x] : 0, place = 0;
    int32_t id = threadIdx.x < count ? from.ids[threadIdx.x] : 0;
    if (key > 0) {
      for (uint32_t i = 0; i < count; ++i)
        place += from.keys[i] > key || (from.keys[i] == key && from.ids[i] < id);
      if (place < Count) {
        to.keys[place] = key;
        to.ids[place] = id;
      }
    }
    __syncthreads();
  }

  Cluster<Threads> *cluster_;
  const float *logits_;
  uint32_t first_;
  float kept_[isKept ? part : 1];
};

} // namespace strata
