// The commands of strata-run, one file each.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

#include "runtime/base/Status.h"

namespace strata::run {

/// Runs a command whose arguments were parsed. Its error is printed by main(), once.
using Action = std::function<Status()>;

// Each declares the command's arguments on `command` and returns what runs it after parsing.
Action addGenerate(CLI::App &command);
Action addChat(CLI::App &command);
Action addLogits(CLI::App &command);
Action addPerplexity(CLI::App &command);
Action addTokenize(CLI::App &command);
Action addReplay(CLI::App &command);
Action addBench(CLI::App &command);
Action addExplain(CLI::App &command);
Action addVerify(CLI::App &command);
Action addDevices(CLI::App &command);

} // namespace strata::run
