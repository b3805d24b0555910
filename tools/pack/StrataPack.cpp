// strata-pack: gives the planner a problem from a file and prints the answer.
//
// Exit codes: 0 placed (and within --capacity), 1 an answer that the checker refuses, 2 wrong
// arguments, 3 a file that is absent or inconsistent, 4 no placement within --capacity.
#include <chrono>
#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/pack/ProblemFile.h"

using namespace strata;

namespace {

enum ExitCode { Success = 0, Internal = 1, Usage = 2, InvalidData = 3, DoesNotFit = 4 };

int fail(ExitCode code, const std::string &message) {
  fmt::print(stderr, "strata-pack: error: {}\n", message);
  return code;
}

void printText(const pack::ProblemFile &file, const planner::Solution &solution, double seconds) {
  for (size_t k = 0; k < file.ids.size(); ++k)
    fmt::print("{} {}\n", file.ids[k], solution.offsets[k]);
  fmt::print("peak {}\nlower bound {}\nproven {}\nnodes {}\nseconds {:.3f}\n", solution.peak,
             solution.lowerBound, solution.proven ? "yes" : "no", solution.nodes, seconds);
}

void printJson(const planner::Solution &solution, double seconds) {
  nlohmann::ordered_json out = {
      {"offsets", solution.offsets},
      {"peak", solution.peak},
      {"lower_bound", solution.lowerBound},
      {"proven", solution.proven},
      {"nodes", solution.nodes},
      {"seconds", seconds},
  };
  fmt::print("{}\n", out.dump());
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app{"Places buffers with given lifetimes and sizes in as few bytes as can be.",
               "strata-pack"};
  std::string path;
  planner::Problem problem;
  planner::Bytes capacity = 0;
  bool json = false;
  app.add_option("FILE", path, "CSV with the columns id, lower, upper, size; [lower, upper)")
      ->required();
  CLI::Option *capacityOption =
      app.add_option("--capacity", capacity, "Stop at the first placement in so many bytes")
          ->check(CLI::NonNegativeNumber);
  app.add_option("--node-limit", problem.nodeLimit, "Search nodes")->capture_default_str();
  app.add_flag("--json", json, "Print one JSON object");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &request) { // --help
    return app.exit(request);
  } catch (const CLI::ParseError &error) {
    return fail(Usage, error.what());
  }

  Result<pack::ProblemFile> file = pack::readProblem(path);
  if (!file.isOk())
    return fail(InvalidData, file.status().toString());
  problem.buffers = file->buffers;
  if (capacityOption->count() > 0)
    problem.capacity = capacity;

  auto start = std::chrono::steady_clock::now();
  planner::Solution solution = planner::solve(problem);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (auto conflict = planner::check(problem.buffers, solution.offsets))
    return fail(Internal, fmt::format("buffers '{}' and '{}' overlap in the planner's answer",
                                      file->ids[conflict->first], file->ids[conflict->second]));

  if (json)
    printJson(solution, seconds);
  else
    printText(*file, solution, seconds);
  if (problem.capacity && solution.peak > *problem.capacity)
    return fail(
        DoesNotFit,
        solution.lowerBound > *problem.capacity
            ? fmt::format("the buffers need at least {} bytes, --capacity allows {}",
                          solution.lowerBound, *problem.capacity)
            : fmt::format("no placement within {} bytes was found in {} nodes (--node-limit "
                          "{}; a higher one searches longer)",
                          *problem.capacity, solution.nodes, problem.nodeLimit));
  return Success;
}
