// From a checkpoint, or a text of any level, to a plan or to the text of another level.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/ImportOptions.h"
#include "runtime/base/Status.h"

namespace strata {

enum class Emit { Model, Placed, Planned, Plan };

enum class Explain { No, Text, Json, Html };

struct CompileOptions {
  std::string model;      ///< A GGUF file, a Hugging Face folder, a config.json or a `.mlir` text.
  std::string checkpoint; ///< Where a text's tensors and vocabulary are; only beside a text.
  std::string output;     ///< A file; empty: text goes to standard output.
  ImportOptions import;   ///< Of no effect on a text, which says all of it.
  Emit emit = Emit::Plan;
  std::string emitAfter;          ///< Print the text after this pass instead; empty: by `emit`.
  std::string weights = "inside"; ///< `inside` the plan, `none`, or the folder of a store.
  unsigned threads = 0;           ///< 0: as many as there are cores.
  Explain explain = Explain::No;  ///< Print the plan's memory table to standard output.
  /// Plan without weight bytes, explain, and write nothing. What has no kernel is noted, not
  /// refused.
  bool dryRun = false;
  /// `import.maxRows` becomes the largest number of rows whose plan fits the devices.
  bool largestBatch = false;
  std::string remarksFilter; ///< A regular expression over categories; empty: no remarks.

  /// Called with a sentence that a person may want to know, or a remark.
  std::function<void(const std::string &)> note = [](const std::string &) {};
  /// Called while weights are packed, from the calling thread.
  std::function<void(uint64_t bytes, uint64_t totalBytes)> progress = [](uint64_t, uint64_t) {};
};

/// Whether `path` is taken as a text of the dialect.
bool isModelText(const std::string &path);

/// Compiles. The output appears under its name only when it is complete. The first diagnostic of a
/// pass that refuses becomes the error's message; its code says why the pass exists:
/// partition-stages ResourceExhausted (as is a finished plan that its devices do not hold),
/// select-kernels Unimplemented, any other InvalidData. Errors:
/// those, and all of Checkpoint::open, importModel and writePlan.
Status compileModel(const CompileOptions &options);

} // namespace strata
