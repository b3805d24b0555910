// strata-run: runs plans. This file finds the command; each command is a file of its own.
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "runtime/plan/PlanFile.h"
#include "tools/run/Commands.h"
#include "tools/run/ExitCode.h"
#include "tools/run/FileFault.h"

using namespace strata;
using namespace strata::run;

namespace {

struct Command {
  const char *name;
  const char *summary;
  Action (*add)(CLI::App &);
};

constexpr Command commands[] = {
    {"generate", "Continue a prompt", addGenerate},
    {"chat", "Talk with a model: each line of input is a message", addChat},
    {"logits", "Write the logits at every position of a sequence", addLogits},
    {"perplexity", "Measure how well a text is predicted", addPerplexity},
    {"tokenize", "Turn text into ids", addTokenize},
    {"replay", "Run a trace of requests", addReplay},
    {"bench", "Measure a plan on this machine", addBench},
    {"explain", "Print a plan's memory table, forward by forward", addExplain},
    {"verify", "Check a plan and the content of its weights", addVerify},
    {"devices", "List this machine's devices", addDevices},
};

Status serve(const std::string &plan) {
  std::error_code ignored;
  if (!std::filesystem::exists(plan, ignored))
    return makeError(StatusCode::InvalidArgument,
                     "'{}' is neither a command nor a plan file; `strata-run --help` lists the "
                     "commands",
                     plan);
  if (std::filesystem::is_directory(plan, ignored))
    return makeError(StatusCode::InvalidArgument,
                     "'{}' is a folder; a plan is a file, which strata-compile makes of a model",
                     plan);
  return makeError(StatusCode::Unimplemented,
                   "the server is not built yet; `strata-run generate {} \"a prompt\"` runs one "
                   "completion",
                   plan);
}

int fail(ExitCode code, const std::string &message) {
  std::fflush(stdout);
  fmt::print(stderr, "strata-run: error: {}\n", message);
  return static_cast<int>(code);
}

/// What the streams say at the end. An error of an earlier flush stays in the stream, where a last
/// one has nothing left to write.
int finish() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    return fail(ExitCode::Internal, "standard output cannot be written");
  return static_cast<int>(ExitCode::Success);
}

} // namespace

int main(int argc, char **argv) {
  endOnFileFault();
  CLI::App app{"Runs language models that strata-compile made into plans.", "strata-run"};
  app.set_version_flag("--version", fmt::format("strata-run {} (plan format {})", STRATA_VERSION,
                                                planFormatVersion));
  app.footer("Exit codes are listed in docs/operations.md.");
  std::string plan;
  app.add_option("PLAN", plan, "Without a command: serve this plan (not built yet)");

  Action action = [&] { return serve(plan); };
  for (const Command &command : commands) {
    CLI::App *subcommand = app.add_subcommand(command.name, command.summary);
    Action run = command.add(*subcommand);
    subcommand->callback([&action, run] { action = run; });
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &request) { // --help, --version
    int code = app.exit(request);
    std::cout.flush();
    return code != 0 || std::cout ? code
                                  : fail(ExitCode::Internal, "standard output cannot be written");
  } catch (const CLI::ParseError &error) {
    return fail(ExitCode::Usage, error.what());
  }
  if (argc == 1) {
    fmt::print("{}", app.help());
    return static_cast<int>(ExitCode::Usage);
  }

  Status status = action();
  if (!status.isOk() && status.code() == StatusCode::Cancelled && status.message().empty())
    return static_cast<int>(ExitCode::Interrupted); // the command has said it in its output
  if (!status.isOk())
    return fail(exitCodeOf(status.code()), status.toString());
  return finish();
}
