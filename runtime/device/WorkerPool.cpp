#include "runtime/device/WorkerPool.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "runtime/device/Signal.h"

namespace strata {

struct WorkerPool::Shared {
  explicit Shared(uint32_t workers) : workers(workers), done(workers) {}

  // Written by the caller before `launch` is set, read by workers after.
  std::span<const PoolCommand> commands;
  ItemCounts counts;

  const uint32_t workers;
  Signal launch;                    ///< Number of the launch that runs.
  Signal phase;                     ///< Barriers passed, over all launches.
  Signal finished;                  ///< Number of the last launch that ended.
  std::atomic<uint32_t> arrived{0}; ///< At the current barrier.
  std::atomic<bool> stop{false};

  /// Commands that each worker has ended in this launch; for reports of a stall only.
  struct alignas(64) Progress {
    std::atomic<uint32_t> commands{0};
  };
  std::vector<Progress> done;

  uint32_t slowest() const {
    uint32_t least = 0;
    for (uint32_t i = 1; i < workers; ++i)
      if (done[i].commands.load(std::memory_order_relaxed) <
          done[least].commands.load(std::memory_order_relaxed))
        least = i;
    return least;
  }

  /// False where the pool is being taken down.
  bool runLine(uint32_t worker, uint32_t number) {
    for (uint32_t i = 0; i < commands.size(); ++i) {
      const PoolCommand &command = commands[i];
      uint64_t items = command.itemCount(counts);
      auto begin = uint32_t(items * worker / workers);
      auto end = uint32_t(items * (worker + 1) / workers);
      if (begin < end)
        command.function(command.slots, begin, end, worker);
      // After a stall the line is gone for everyone: nothing of it is looked at again.
      if (stop.load(std::memory_order_acquire))
        return false;
      done[worker].commands.store(i + 1, std::memory_order_relaxed);
      bool isLast = i + 1 == commands.size();
      uint32_t current = phase.value();
      if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == workers) {
        arrived.store(0, std::memory_order_relaxed);
        phase.set(current + 1);
        if (isLast)
          finished.set(number);
      } else if (!isLast) {
        phase.waitWhile(current);
        if (stop.load(std::memory_order_acquire))
          return false;
      }
      if (isLast)
        return true;
    }
    return true;
  }
};

struct WorkerPool::Worker {
  std::shared_ptr<Shared> shared;
  uint32_t number;
};

void *WorkerPool::workerMain(void *argument) {
  std::unique_ptr<Worker> worker(static_cast<Worker *>(argument));
  Shared &shared = *worker->shared;
  for (uint32_t number = 0;;) {
    shared.launch.waitWhile(number);
    number = shared.launch.value();
    if (shared.stop.load(std::memory_order_acquire) || !shared.runLine(worker->number, number))
      return nullptr;
  }
}

WorkerPool::WorkerPool(uint32_t workers)
    : workers_(workers), shared_(std::make_shared<Shared>(workers)) {}

Result<std::shared_ptr<WorkerPool>> WorkerPool::create(uint32_t workers) {
  if (workers == 0 || workers > 1024)
    return makeError(StatusCode::InvalidArgument,
                     "{} worker threads asked for; 1 to 1024 can be had", workers);
  std::shared_ptr<WorkerPool> pool(new WorkerPool(workers));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stackBytes);
  int error = 0;
  for (uint32_t i = 0; i < workers && error == 0; ++i) {
    auto worker = std::make_unique<Worker>(Worker{pool->shared_, i});
    pthread_t thread;
    error = pthread_create(&thread, &attributes, workerMain, worker.get());
    if (error != 0)
      break;
    worker.release(); // the thread owns it now
    pool->threads_.push_back(thread);
    pthread_setname_np(thread, fmt::format("strata-{}", i).c_str());
  }
  pthread_attr_destroy(&attributes);
  if (error != 0)
    return makeError(StatusCode::ResourceExhausted,
                     "cannot start worker thread {} of {}: {}; ask for fewer with --threads",
                     pool->threads_.size(), workers, std::strerror(error));
  return pool;
}

WorkerPool::~WorkerPool() {
  shared_->stop.store(true, std::memory_order_release);
  shared_->launch.set(launches_ + 1);
  shared_->phase.set(shared_->phase.value() + 1);
  for (pthread_t thread : threads_) {
    if (!stall_) {
      pthread_join(thread, nullptr);
      continue;
    }
    timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += 50'000'000;
    end.tv_sec += end.tv_nsec / 1'000'000'000;
    end.tv_nsec %= 1'000'000'000;
    if (pthread_timedjoin_np(thread, nullptr, &end) != 0)
      pthread_detach(thread);
  }
}

std::optional<Stall> WorkerPool::run(std::span<const PoolCommand> commands,
                                     const ItemCounts &counts, std::chrono::nanoseconds stall) {
  if (stall_ || commands.empty())
    return stall_;
  shared_->commands = commands;
  shared_->counts = counts;
  for (auto &progress : shared_->done)
    progress.commands.store(0, std::memory_order_relaxed);
  uint32_t previous = launches_++;
  shared_->launch.set(launches_);
  for (uint32_t seen = shared_->phase.value();;) {
    if (shared_->finished.waitWhile(previous, stall))
      return std::nullopt;
    uint32_t now = shared_->phase.value();
    if (now == seen) {
      uint32_t worker = shared_->slowest();
      stall_ = Stall{shared_->done[worker].commands.load(std::memory_order_relaxed), worker};
      return stall_;
    }
    seen = now; // a long line, but it moves
  }
}

} // namespace strata
