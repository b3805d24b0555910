// Ctrl-C as a question that long commands ask between two steps.
#pragma once

namespace strata::run {

/// While one lives, SIGINT and SIGTERM only set a flag; a second one ends the process as usual.
class InterruptScope {
public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope &) = delete;
  InterruptScope &operator=(const InterruptScope &) = delete;

  bool requested() const;
  bool terminates() const; ///< Whether it was SIGTERM, which wants the whole process to end.
  int descriptor() const;  ///< For poll(): readable once requested(), whichever thread was told.
  void rearm();            ///< Forgets a Ctrl-C and waits for another; SIGTERM stays.
};

} // namespace strata::run
