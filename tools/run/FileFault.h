// Files that a tool has mapped and that somebody cuts short while it runs.
#pragma once

#include <cerrno>
#include <csignal>
#include <cstring>

#include <unistd.h>

#include "tools/run/ExitCode.h"

namespace strata::run {

/// From now on a read of mapped bytes that are no longer there (SIGBUS) ends the process with one
/// message and the exit code of invalid data. Files are mapped, not copied, so that a plan's
/// weights lie in memory once, however many processes run it; what that costs is said here.
inline void endOnFileFault() {
  struct sigaction action = {};
  action.sa_sigaction = [](int signal, siginfo_t *info, void *) {
    if (info->si_code != BUS_ADRERR) {
      std::signal(signal, SIG_DFL); // returns to the same instruction
      return;
    }
    auto say = [](const char *text) {
      [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
    };
    say(program_invocation_short_name);
    say(": error: a mapped file was cut short or could not be read while it was in use; put it "
        "back "
        "whole, and replace such files by renaming new ones over them\n");
    _exit(static_cast<int>(ExitCode::InvalidData));
  };
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

} // namespace strata::run
