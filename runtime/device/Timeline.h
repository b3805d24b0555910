// A number that only grows and that threads wait on: how often a slot was filled, how many launches
// have ended. Waiters spin briefly, then sleep in the kernel (a futex), so that a waiter needs no
// lock and whoever advances makes a system call only when someone sleeps.
#pragma once

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <optional>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace strata {

/// Values wrap around: those in use lie within 2^29 of each other.
class Timeline {
public:
  uint32_t value() const { return value_.load(std::memory_order_acquire); }
  bool reached(uint32_t value) const { return isAtOrPast(this->value(), value); }

  /// Publishes what the caller wrote before, and wakes every waiter. A lower value changes nothing.
  void advance(uint32_t value) {
    // Sequential consistency pairs this store and load with the increment and load of a waiter: one
    // of the two sees the other.
    uint32_t current = value_.load(std::memory_order_relaxed);
    while (!isAtOrPast(current, value))
      if (value_.compare_exchange_weak(current, value, std::memory_order_seq_cst))
        break;
    wake();
  }

  /// Ends every wait, now and later: the value jumps past all that are waited for.
  void close() {
    value_.fetch_add(1u << 30, std::memory_order_seq_cst);
    wake();
  }

  /// Returns when `value` is reached, or false once `timeout` has passed.
  bool wait(uint32_t value, std::optional<std::chrono::nanoseconds> timeout = std::nullopt) {
    for (int i = 0; i < spins; ++i) {
      if (reached(value))
        return true;
      __builtin_ia32_pause();
    }
    using Clock = std::chrono::steady_clock;
    Clock::time_point end = timeout ? Clock::now() + *timeout : Clock::time_point::max();
    bool isReached = false;
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (true) {
      uint32_t current = value_.load(std::memory_order_seq_cst);
      isReached = isAtOrPast(current, value);
      if (isReached)
        break;
      timespec wait{};
      if (timeout) {
        auto left = std::chrono::nanoseconds(end - Clock::now()).count();
        if (left <= 0)
          break;
        wait = {left / 1'000'000'000, left % 1'000'000'000};
      }
      ::syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, current, timeout ? &wait : nullptr, nullptr,
                0);
    }
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    return isReached;
  }

private:
  static constexpr int spins = 1000; // 10 to 40 us, longer than most launches of a small model wait

  static bool isAtOrPast(uint32_t current, uint32_t value) {
    return static_cast<int32_t>(current - value) >= 0;
  }
  void wake() {
    if (sleepers_.load(std::memory_order_seq_cst) != 0)
      ::syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }

  std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> sleepers_{0};
  static_assert(sizeof(std::atomic<uint32_t>) == 4); // what the kernel looks at
};

} // namespace strata
