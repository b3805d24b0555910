// A number that threads wait on: they spin briefly, then sleep in the kernel (a futex), so that a
// waiter needs no lock and a setter makes a system call only when someone sleeps.
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

class Signal {
public:
  uint32_t value() const { return value_.load(std::memory_order_acquire); }

  /// Publishes what the caller wrote before, and wakes every waiter.
  void set(uint32_t value) {
    // Sequential consistency pairs this store and load with the increment and load of a waiter: one
    // of the two sees the other.
    value_.store(value, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0)
      ::syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }

  /// Returns when the value is not `old`, or false once `timeout` has passed.
  bool waitWhile(uint32_t old, std::optional<std::chrono::nanoseconds> timeout = std::nullopt) {
    for (int i = 0; i < spins; ++i) {
      if (value() != old)
        return true;
      __builtin_ia32_pause();
    }
    using Clock = std::chrono::steady_clock;
    Clock::time_point end = timeout ? Clock::now() + *timeout : Clock::time_point::max();
    bool isChanged = false;
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (!(isChanged = value_.load(std::memory_order_seq_cst) != old)) {
      timespec wait{};
      if (timeout) {
        auto left = std::chrono::nanoseconds(end - Clock::now()).count();
        if (left <= 0)
          break;
        wait = {left / 1'000'000'000, left % 1'000'000'000};
      }
      ::syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, old, timeout ? &wait : nullptr, nullptr, 0);
    }
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    return isChanged;
  }

private:
  static constexpr int spins = 1000; // 10 to 40 us, longer than most commands of a small model

  std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> sleepers_{0};
  static_assert(sizeof(std::atomic<uint32_t>) == 4); // what the kernel looks at
};

} // namespace strata
