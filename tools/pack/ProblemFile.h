// Allocation problems as CSV: a header that names the columns id, lower, upper and size in any
// order (others are ignored), then one buffer a line. Lifetimes are half-open.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "passes/planner/Planner.h"
#include "runtime/base/Status.h"

namespace strata::pack {

struct ProblemFile {
  std::vector<std::string> ids; ///< One a buffer, in the file's order; no two are equal.
  std::vector<planner::Buffer> buffers;
};

/// `name` stands in messages. Errors: InvalidData, naming the line: a missing or repeated column,
/// too few or too many fields, a number that is none or does not fit 64 bits, lower >= upper, size
/// < 1, a repeated id, sizes whose sum passes 2^63 - 1.
Result<ProblemFile> parseProblem(std::string_view text, const std::string &name);

/// Errors: NotFound, InvalidData, Internal, and those of parseProblem.
Result<ProblemFile> readProblem(const std::string &path);

} // namespace strata::pack
