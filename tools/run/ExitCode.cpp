#include "tools/run/ExitCode.h"

namespace strata::run {

ExitCode exitCodeOf(StatusCode code) {
  switch (code) {
  case StatusCode::Ok:
    return ExitCode::Success;
  case StatusCode::InvalidArgument:
    return ExitCode::Usage;
  case StatusCode::InvalidData:
  case StatusCode::NotFound:
    return ExitCode::InvalidData;
  case StatusCode::Unimplemented:
    return ExitCode::NotSupported;
  case StatusCode::ResourceExhausted:
  case StatusCode::FailedPrecondition:
    return ExitCode::DoesNotFit;
  case StatusCode::DeadlineExceeded:
    return ExitCode::Deadline;
  case StatusCode::Cancelled:
    return ExitCode::Interrupted;
  case StatusCode::Internal:
    break;
  }
  return ExitCode::Internal;
}

} // namespace strata::run
