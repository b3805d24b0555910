#include "tools/run/Interrupt.h"

#include <cerrno>
#include <csignal>
#include <cstdint>

#include <sys/eventfd.h>
#include <unistd.h>

namespace strata::run {

namespace {

// A signal handler reaches nothing else.
volatile std::sig_atomic_t received = 0; // the signal
volatile int wakeUp = -1;                // readable once it came

void install(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void handle(int signal) {
  int before = errno;
  received = signal;
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(wakeUp, &one, sizeof one);
  errno = before;
}

} // namespace

InterruptScope::InterruptScope() {
  wakeUp = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  rearm();
}

InterruptScope::~InterruptScope() {
  install(SIG_DFL);
  close(wakeUp);
  wakeUp = -1;
}

bool InterruptScope::requested() const { return received != 0; }

bool InterruptScope::terminates() const { return received == SIGTERM; }

int InterruptScope::descriptor() const { return wakeUp; }

void InterruptScope::rearm() {
  uint64_t count = 0;
  [[maybe_unused]] ssize_t taken = read(wakeUp, &count, sizeof count);
  received = 0;
  install(handle);
}

} // namespace strata::run
