#pragma once

#include "runtime/chat/Evaluator.h"

namespace strata::chat {

/// One level of the C++ stack that a template can make deeper.
class Evaluator::DepthGuard {
public:
  explicit DepthGuard(uint32_t &depth) : depth_(depth) { ++depth_; }
  ~DepthGuard() { --depth_; }

  Status check(uint32_t limit) const {
    if (depth_ > limit)
      return makeError(
          StatusCode::ResourceExhausted,
          "macros, loops and expressions nested deeper than {}; a macro may call itself "
          "for ever",
          limit);
    return Status::ok();
  }

private:
  uint32_t &depth_;
};

} // namespace strata::chat
