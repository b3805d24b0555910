// What is to be served: everything of a model's text that the checkpoint does not say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace strata {

struct ImportDevice {
  std::string target; ///< Canonical: `cpu:x86-64-v4`.
  int64_t bytes = 0;  ///< Of its memory; 0: not limited.
};

struct ImportOptions {
  std::string name;                  ///< Empty: the checkpoint's own.
  std::vector<ImportDevice> devices; ///< One a stage; at least one.
  int64_t maxContext = 0;            ///< Tokens of one sequence; 0: the model's, at most 8192.
  int64_t maxSequences = 4;
  int64_t maxRows = 128;                ///< Rows of the largest bucket.
  std::vector<int64_t> split;           ///< Decoder layers a stage; empty: the compiler decides.
  std::vector<int64_t> buckets;         ///< Rows, sequences, rows, ...; empty: the default ones.
  std::string keyType;                  ///< f32, f16 or bf16 of cached keys; empty: by the weights.
  std::string valueType;                ///< The same of cached values.
  int64_t blockTokens = 16;             ///< Tokens of a block of state.
  std::string weightType;               ///< Of matrices, for a checkpoint without weights only.
  std::vector<std::string> ignoredKeys; ///< Configuration keys that the user accepts unread.
};

/// The context of a plan where nobody asks for one.
constexpr int64_t defaultMaxContext = 8192;
/// Rows of a bucket that anybody may ask for.
constexpr int64_t maxBatchTokens = int64_t(1) << 16;

} // namespace strata
