// strata-run logits: the logits at every position, to a safetensors file.
#include <memory>
#include <vector>

#include "runtime/Strata.h"
#include "runtime/plan/PlanFile.h"
#include "tools/run/Commands.h"
#include "tools/run/EngineFlags.h"
#include "tools/run/ProgressBar.h"
#include "tools/run/Prompt.h"
#include "tools/run/TensorFile.h"

namespace strata::run {
namespace {

struct Options {
  std::string plan;
  std::vector<int32_t> ids;
  std::string output;
  EngineFlags engine;
};

/// What the engine's sink is handed: it cannot return a Status, so the first failure waits here.
struct Output {
  TensorFile &file;
  ProgressBar &progress;
  Status status;

  static void take(void *context, uint32_t firstPosition, uint32_t rows,
                   std::span<const float> values) {
    auto &output = *static_cast<Output *>(context);
    if (output.status.isOk())
      output.status = output.file.write(values);
    output.progress.update(uint64_t(firstPosition) + rows);
  }
};

Status logits(const Options &options) {
  STRATA_ASSIGN_OR_RETURN(std::shared_ptr<const PlanFile> plan, PlanFile::open(options.plan));
  if (options.ids.size() > plan->plan().max_context())
    return makeError(StatusCode::InvalidArgument,
                     "{} ids pass the plan's context of {} tokens; compile with a larger "
                     "--max-context",
                     options.ids.size(), plan->plan().max_context());
  EngineOptions engineOptions{.sequences = 1, .kvTokens = options.ids.size()};
  options.engine.apply(engineOptions);
  STRATA_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::create(plan, engineOptions));
  STRATA_ASSIGN_OR_RETURN(std::unique_ptr<TensorFile> file,
                          TensorFile::create(options.output, "logits", options.ids.size(),
                                             engine->plan().plan().vocabulary_size()));
  ProgressBar progress("logits", options.ids.size());
  Output output{*file, progress, {}};
  STRATA_RETURN_IF_ERROR(engine->logits(options.ids, Output::take, &output));
  STRATA_RETURN_IF_ERROR(std::move(output.status));
  return file->finish();
}

} // namespace

Action addLogits(CLI::App &command) {
  auto options = std::make_shared<Options>();
  command.add_option("PLAN", options->plan, "A plan file")->required();
  addIdsOption(command, options->ids)->required();
  command
      .add_option("-o,--output", options->output,
                  "Safetensors file to write: tensor `logits`, F32 [positions, vocabulary]")
      ->required();
  options->engine.addTo(command);
  return [options] { return logits(*options); };
}

} // namespace strata::run
