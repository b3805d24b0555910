#include "tools/run/EngineFlags.h"

#include "tools/run/OptionChecks.h"

namespace strata::run {

void addThreads(CLI::App &command, uint32_t &threads) {
  command
      .add_option(
          "--threads", threads,
          "Worker threads of each stage on a CPU; 0: the cores, shared out among the stages")
      ->capture_default_str();
}

void EngineFlags::addTo(CLI::App &command) {
  addThreads(command, threads);
  command
      .add_option("--devices", devices,
                  "Devices, one a stage: cpu, cuda:INDEX or cuda:UUID (default: the plan's)")
      ->delimiter(',');
  command.add_flag("--no-graphs", noGraphs,
                   "Launch a GPU's kernels one by one: slower, and an error names its op");
  randomWeights = command
                      .add_option("--random-weights", randomWeightsSeed,
                                  "Fill a plan without weights from this seed")
                      ->check(wholeNumber);
}

void EngineFlags::apply(EngineOptions &options) const {
  options.threads = threads;
  options.devices = devices;
  options.useGraphs = !noGraphs;
  if (randomWeights->count() > 0)
    options.randomWeightsSeed = randomWeightsSeed;
}

} // namespace strata::run
