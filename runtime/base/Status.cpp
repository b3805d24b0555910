#include "runtime/base/Status.h"

namespace strata {

std::string_view statusCodeName(StatusCode code) {
  switch (code) {
  case StatusCode::Ok:
    return "ok";
  case StatusCode::InvalidArgument:
    return "invalid argument";
  case StatusCode::InvalidData:
    return "invalid data";
  case StatusCode::NotFound:
    return "not found";
  case StatusCode::Unimplemented:
    return "not supported";
  case StatusCode::ResourceExhausted:
    return "does not fit";
  case StatusCode::FailedPrecondition:
    return "failed precondition";
  case StatusCode::DeadlineExceeded:
    return "deadline exceeded";
  case StatusCode::Cancelled:
    return "cancelled";
  case StatusCode::Internal:
    return "internal error";
  }
  return "unknown";
}

Status &&Status::at(std::string_view kind, std::string_view name) && {
  // One that is there already is not named twice.
  std::string place = fmt::format("{} '{}'", kind, name);
  std::string named = fmt::format(", {}, ", places_);
  if (named.find(fmt::format(", {}, ", place)) == std::string::npos)
    places_ += (places_.empty() ? "" : ", ") + place;
  return std::move(*this);
}

std::string Status::toString() const {
  if (isOk())
    return "ok";
  return places_.empty() ? message_ : fmt::format("{} ({})", message_, places_);
}

} // namespace strata
