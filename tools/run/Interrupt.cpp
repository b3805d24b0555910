#include "tools/run/Interrupt.h"

#include <csignal>

namespace strata::run {

namespace {

volatile std::sig_atomic_t interrupted = 0; // a signal handler reaches nothing else

void install(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

} // namespace

InterruptScope::InterruptScope() {
  interrupted = 0;
  install([](int) { interrupted = 1; });
}

InterruptScope::~InterruptScope() { install(SIG_DFL); }

bool InterruptScope::requested() const { return interrupted != 0; }

} // namespace strata::run
