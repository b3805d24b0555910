// A plan of a two-layer attention model, made by hand: what the tests of plan and stage load, bend
// and break.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/Status.h"
#include "runtime/plan/Plan_generated.h"

namespace strata::test {

/// Sizes of the model and its weights, F32. Small, but no two numbers that could be confused agree.
struct TinyModel {
  static constexpr uint32_t vocabulary = 40, hidden = 32, heads = 2, headWidth = 16, layers = 2;
  static constexpr uint32_t context = 24, blockTokens = 4, sequences = 3;
  static constexpr uint32_t blocksPerSequence = 6; // 24 / 4
  static constexpr double epsilon = 1e-5;

  struct Layer {
    std::vector<float> norm, q, k, v, o;
  };
  std::vector<float> embedding, finalNorm; // the head uses the embedding too
  std::vector<Layer> layer;

  explicit TinyModel(uint64_t seed = 1);

  /// Logits after each of `ids`, in double, written from the equations.
  std::vector<std::vector<double>> logits(const std::vector<int32_t> &ids) const;
};

/// Buckets by index; TinyPlan has exactly these.
enum TinyBucket : uint32_t { R1S1, R2S2, R4S1, H1, H2 };

struct TinyOptions {
  uint32_t stages = 1; ///< 1 to 4: both layers, one each, the head apart, the embedding too.
  std::string target;  ///< Empty: this CPU's.
  uint32_t slots = 2;  ///< Of every handoff.
};

/// Everything but the segments' names and places, which writeTinyPlan() fills.
fb::PlanT tinyPlan(const TinyOptions &options = {});

/// The finished FlatBuffer.
std::vector<uint8_t> packPlan(const fb::PlanT &plan);

/// Writes `plan` with the weights of `model` through a PlanWriter.
Status writeTinyPlan(const std::string &path, fb::PlanT &plan, const TinyModel &model,
                     fb::WeightsPlace place = fb::WeightsPlace::Inside,
                     const std::string &store = "");

/// A fresh folder below the system's temporary one, removed at the end of its scope.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string operator/(const std::string &name) const { return path_ + "/" + name; }
  const std::string &path() const { return path_; }

private:
  std::string path_;
};

} // namespace strata::test
