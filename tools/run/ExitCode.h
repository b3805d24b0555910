// What strata-run's exit codes mean (docs/operations.md).
#pragma once

#include "runtime/base/Status.h"

namespace strata::run {

enum class ExitCode : int {
  Success = 0,
  Internal = 1,      ///< A broken invariant, or a failed write.
  Usage = 2,         ///< Asked for something that can never work.
  InvalidData = 3,   ///< A file is absent, truncated or inconsistent.
  DoesNotFit = 4,    ///< This machine cannot run it: a retry fails again.
  NotSupported = 5,  ///< Refused by name: this build does not do it.
  Deadline = 6,      ///< A wait ran past its deadline; a retry may succeed.
  Interrupted = 130, ///< Ctrl-C; what was written until then is whole.
};

ExitCode exitCodeOf(StatusCode code);

} // namespace strata::run
