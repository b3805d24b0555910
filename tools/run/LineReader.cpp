#include "tools/run/LineReader.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace strata::run {
namespace {

constexpr size_t maxLineBytes = size_t{4} << 20;

} // namespace

LineReader::LineReader() : onTerminal_(isatty(STDIN_FILENO) != 0) {}

Result<std::optional<std::string>> LineReader::next(InterruptScope &interrupt) {
  for (size_t searched = 0;;) {
    if (size_t end = pending_.find('\n', searched); end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return std::optional(std::move(line));
    }
    if (atEnd_)
      return pending_.empty() ? std::nullopt : std::optional(std::exchange(pending_, {}));
    searched = pending_.size();
    if (searched > maxLineBytes)
      return makeError(StatusCode::InvalidArgument, "a line of more than {} bytes; break it up",
                       maxLineBytes);

    pollfd inputs[] = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                       {.fd = interrupt.descriptor(), .events = POLLIN, .revents = 0}};
    int ready = poll(inputs, std::size(inputs), -1);
    if (interrupt.requested()) {
      if (interrupt.terminates() || !onTerminal_)
        return std::optional<std::string>();
      interrupt.rearm();
      fmt::print("\n(Ctrl-D or /exit ends the conversation)\n> ");
      std::fflush(stdout);
      pending_.clear();
      searched = 0;
      continue;
    }
    if (ready < 0 && errno == EINTR)
      continue;
    std::array<char, 1 << 14> piece;
    ssize_t count = ready < 0 ? -1 : read(STDIN_FILENO, piece.data(), piece.size());
    if (count < 0)
      return makeError(StatusCode::Internal, "standard input cannot be read: {}",
                       std::strerror(errno));
    atEnd_ = count == 0;
    pending_.append(piece.data(), size_t(count));
  }
}

} // namespace strata::run
