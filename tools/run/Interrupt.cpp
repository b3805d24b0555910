#include "tools/run/Interrupt.h"

#include <cerrno>
#include <csignal>
#include <cstdint>

#include <sys/eventfd.h>
#include <unistd.h>

namespace strata::run {

namespace {

// A signal handler reaches nothing else.
volatile std::sig_atomic_t interrupted = 0, terminated = 0;
volatile int wakeUp = -1; // readable once one of them is set

void install(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(signal, &action, nullptr);
}

void wake() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(wakeUp, &one, sizeof one);
}

void handle(int signal) {
  int before = errno;
  (signal == SIGTERM ? terminated : interrupted) = 1;
  wake();
  errno = before;
}

} // namespace

InterruptScope::InterruptScope() {
  wakeUp = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  interrupted = 0;
  terminated = 0;
  install(SIGINT, handle);
  install(SIGTERM, handle);
}

InterruptScope::~InterruptScope() {
  install(SIGINT, SIG_DFL);
  install(SIGTERM, SIG_DFL);
  close(wakeUp);
  wakeUp = -1;
}

bool InterruptScope::requested() const { return interrupted != 0 || terminated != 0; }

bool InterruptScope::terminates() const { return terminated != 0; }

int InterruptScope::descriptor() const { return wakeUp; }

void InterruptScope::rearm() {
  interrupted = 0;
  uint64_t count = 0;
  [[maybe_unused]] ssize_t taken = read(wakeUp, &count, sizeof count);
  if (terminated != 0) // what was read may have been its
    wake();
  install(SIGINT, handle);
}

} // namespace strata::run
