// Lines of standard input, from a terminal or a pipe.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/Status.h"
#include "tools/run/Interrupt.h"

namespace strata::run {

class LineReader {
public:
  LineReader(); ///< Reads file descriptor 0, which nothing else may read.

  bool onTerminal() const { return onTerminal_; }

  /// The next line without its end; absent at the end of the input, and once a signal is to end the
  /// process. On a terminal Ctrl-C empties the line and says how to leave. Errors: InvalidArgument
  /// (a line of more than 4 MiB), Internal (the input cannot be read).
  Result<std::optional<std::string>> next(InterruptScope &interrupt);

private:
  bool onTerminal_;
  bool atEnd_ = false;
  std::string pending_; ///< Read and not yet given.
};

} // namespace strata::run
