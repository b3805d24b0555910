#include "runtime/device/WorkerPool.h"

#include <algorithm>
#include <climits>
#include <cstring>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace strata {
namespace {

constexpr int spins = 1000; // 10 to 40 us: longer than the pause between two commands worth sharing
constexpr int yields = 50;
constexpr uint32_t chunksPerWorker = 4; // the most that a late worker keeps the others waiting for

void sleepOn(std::atomic<uint32_t> &word, uint32_t value) {
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void wakeAll(std::atomic<uint32_t> &word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace

Result<std::unique_ptr<WorkerPool>> WorkerPool::create(uint32_t workers, const std::string &name) {
  if (workers == 0 || workers > 1024)
    return makeError(StatusCode::InvalidArgument,
                     "{} worker threads asked for; 1 to 1024 can be had", workers);
  std::unique_ptr<WorkerPool> pool(new WorkerPool(workers - 1));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stackBytes);
  int error = 0;
  for (Helper &helper : pool->helpers_) {
    helper.pool = pool.get();
    helper.worker = pool->started_ + 1;
    error = pthread_create(&helper.thread, &attributes, helperMain, &helper);
    if (error != 0)
      break;
    ++pool->started_;
    pthread_setname_np(helper.thread,
                       fmt::format("{}.{}", name, helper.worker).substr(0, 15).c_str());
  }
  pthread_attr_destroy(&attributes);
  if (error != 0)
    return makeError(StatusCode::ResourceExhausted,
                     "cannot start worker thread {} of {}: {}; ask for fewer with --threads",
                     pool->started_ + 1, workers, std::strerror(error));
  return pool;
}

WorkerPool::~WorkerPool() {
  stop_.store(true, std::memory_order_seq_cst);
  bell_.fetch_add(1, std::memory_order_seq_cst);
  wakeAll(bell_);
  for (uint32_t i = 0; i < started_; ++i)
    pthread_join(helpers_[i].thread, nullptr);
}

uint32_t WorkerPool::busyWorker() const {
  if (callerIsBusy_.load(std::memory_order_relaxed))
    return 0;
  for (const Helper &helper : helpers_)
    if (helper.isBusy.load(std::memory_order_relaxed))
      return helper.worker;
  return 0;
}

// Claims one chunk of the shared command and runs it; false where none is left.
bool WorkerPool::runChunk(uint32_t worker) {
  uint64_t ticket = ticket_.load(std::memory_order_seq_cst);
  do {
    if (uint32_t(ticket) == 0)
      return false;
    // The number in the upper half makes a claim on an earlier command fail.
  } while (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel,
                                          std::memory_order_acquire));
  uint64_t chunk = chunks_ - uint32_t(ticket);
  auto begin = uint32_t(items_ * chunk / chunks_);
  auto end = uint32_t(items_ * (chunk + 1) / chunks_);
  shared_->function(shared_->slots, begin, end, worker);
  return true;
}

void *WorkerPool::helperMain(void *argument) {
  Helper &helper = *static_cast<Helper *>(argument);
  WorkerPool &pool = *helper.pool;
  auto runOne = [&] {
    helper.isBusy.store(true, std::memory_order_relaxed);
    bool ran = pool.runChunk(helper.worker);
    helper.isBusy.store(false, std::memory_order_relaxed);
    if (!ran)
      return false;
    pool.done_.fetch_add(1, std::memory_order_seq_cst);
    if (pool.callerSleeps_.load(std::memory_order_seq_cst))
      wakeAll(pool.done_);
    return true;
  };
  auto isOpen = [&] { return uint32_t(pool.ticket_.load(std::memory_order_seq_cst)) != 0; };
  for (int idle = 0; !pool.stop_.load(std::memory_order_acquire);) {
    if (isOpen() && runOne()) {
      idle = 0;
    } else if (++idle < spins) {
      __builtin_ia32_pause();
    } else {
      // Either this sees the open command, or its publisher sees a sleeper and rings.
      pool.sleepers_.fetch_add(1, std::memory_order_seq_cst);
      uint32_t bell = pool.bell_.load(std::memory_order_seq_cst);
      if (!isOpen() && !pool.stop_.load(std::memory_order_seq_cst))
        sleepOn(pool.bell_, bell);
      pool.sleepers_.fetch_sub(1, std::memory_order_seq_cst);
      idle = 0;
    }
  }
  return nullptr;
}

void WorkerPool::awaitHelpers() {
  for (int tries = 0; done_.load(std::memory_order_acquire) != chunks_; ++tries) {
    if (tries < spins) {
      __builtin_ia32_pause();
    } else if (tries < spins + yields) {
      sched_yield(); // a helper that has no processor gets this one
    } else {
      callerSleeps_.store(true, std::memory_order_seq_cst);
      uint32_t done = done_.load(std::memory_order_seq_cst);
      if (done != chunks_)
        sleepOn(done_, done);
      callerSleeps_.store(false, std::memory_order_relaxed);
    }
  }
}

void WorkerPool::share(const PoolCommand &command, uint32_t items) {
  shared_ = &command;
  items_ = items;
  chunks_ = std::min(items, chunksPerWorker * workers());
  done_.store(0, std::memory_order_relaxed);
  uint64_t number = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
  ticket_.store(number << 32 | chunks_, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) {
    bell_.fetch_add(1, std::memory_order_seq_cst);
    wakeAll(bell_);
  }
  callerIsBusy_.store(true, std::memory_order_relaxed);
  while (runChunk(0))
    done_.fetch_add(1, std::memory_order_seq_cst);
  callerIsBusy_.store(false, std::memory_order_relaxed);
  awaitHelpers();
}

void WorkerPool::run(std::span<const PoolCommand> commands, const ItemCounts &counts,
                     const std::atomic<bool> &stop) {
  for (uint32_t i = 0; i < commands.size() && !stop.load(std::memory_order_relaxed); ++i) {
    command_.store(i, std::memory_order_relaxed);
    uint32_t items = commands[i].itemCount(counts);
    if (items == 0)
      continue;
    if (commands[i].isShared && items > 1 && !helpers_.empty()) {
      share(commands[i], items);
    } else {
      callerIsBusy_.store(true, std::memory_order_relaxed);
      commands[i].function(commands[i].slots, 0, items, 0);
      callerIsBusy_.store(false, std::memory_order_relaxed);
    }
  }
}

} // namespace strata
