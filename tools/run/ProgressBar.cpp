#include "tools/run/ProgressBar.h"

#include <algorithm>
#include <cstdio>

#include <unistd.h>

#include <fmt/format.h>

namespace strata::run {

ProgressBar::ProgressBar(std::string label, uint64_t total)
    : label_(std::move(label)), total_(std::max<uint64_t>(total, 1)),
      visible_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (drawn_)
    fmt::print(stderr, "\r\033[K");
}

void ProgressBar::update(uint64_t done) {
  auto now = std::chrono::steady_clock::now();
  if (!visible_ || (drawn_ && now - lastDrawn_ < std::chrono::milliseconds(100)))
    return;
  lastDrawn_ = now;
  drawn_ = true;
  constexpr size_t width = 30;
  double share = static_cast<double>(std::min(done, total_)) / static_cast<double>(total_);
  auto full = static_cast<size_t>(share * width);
  fmt::print(stderr, "\r\033[K{} [{:=<{}}{:>{}}] {:3.0f}%", label_, "", full, "", width - full,
             share * 100);
  std::fflush(stderr);
}

} // namespace strata::run
