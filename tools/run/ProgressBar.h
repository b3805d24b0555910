// A bar on standard error for long work; silent where standard error is not a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace strata::run {

class ProgressBar {
public:
  ProgressBar(std::string label, uint64_t total);
  ~ProgressBar(); ///< Clears the line.
  ProgressBar(const ProgressBar &) = delete;
  ProgressBar &operator=(const ProgressBar &) = delete;

  void update(uint64_t done); ///< Draws at most ten times a second.

private:
  std::string label_;
  uint64_t total_;
  bool visible_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point lastDrawn_{};
};

} // namespace strata::run
