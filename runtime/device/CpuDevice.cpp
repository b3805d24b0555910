#include "runtime/device/CpuDevice.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>

#include <sys/mman.h>

#include "runtime/base/CheckedMath.h"
#include "runtime/base/HostMemory.h"

namespace strata {
namespace {

constexpr uint64_t pageBytes = 4096;

/// A command below this many bytes is done by the time that another worker has heard of it.
constexpr uint64_t sharedBytes = 32 << 10;

Result<cpu::Isa> parseTarget(std::string_view target) {
  constexpr std::string_view prefix = "cpu:";
  cpu::Isa isa;
  if (!target.starts_with(prefix) || !cpu::parseIsa(target.substr(prefix.size()), isa))
    return makeError(StatusCode::Unimplemented, "target '{}' is no CPU that this build runs",
                     target);
  if (!cpu::hostRuns(isa))
    return makeError(StatusCode::FailedPrecondition,
                     "the plan was compiled for {} but this CPU runs {}; compile it again on this "
                     "machine or with --devices cpu:{}",
                     cpu::isaName(isa),
                     cpu::hostRunsAny() ? cpu::isaName(cpu::hostIsa()) : "less than x86-64-v3",
                     cpu::isaName(cpu::Isa::X86_64_v3));
  return isa;
}

} // namespace

Result<std::unique_ptr<CpuDevice>> CpuDevice::create(std::string name, std::string_view target,
                                                     const Options &options) {
  Result<cpu::Isa> isa = parseTarget(target);
  if (!isa.isOk())
    return std::move(isa).status().at("device", name);
  std::unique_ptr<CpuDevice> device(new CpuDevice(std::move(name), *isa));
  Queue &queue = *device->queue_;
  queue.ring.resize(std::bit_ceil(options.depth)); // numbers wrap around with it
  std::string threads = fmt::format("strata {}", device->name());
  Result<std::unique_ptr<WorkerPool>> pool = WorkerPool::create(options.workers, threads);
  if (!pool.isOk())
    return std::move(pool).status().at("device", device->name());
  queue.pool = std::move(*pool);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, WorkerPool::stackBytes);
  int error = pthread_create(&queue.thread, &attributes, Queue::threadMain, &queue);
  pthread_attr_destroy(&attributes);
  if (error != 0)
    return makeError(StatusCode::ResourceExhausted, "cannot start the device's thread: {}",
                     std::strerror(error))
        .at("device", device->name());
  queue.isStarted = true;
  pthread_setname_np(queue.thread, threads.substr(0, 15).c_str());
  return device;
}

CpuDevice::Queue::~Queue() {
  pool.reset();
  for (std::span<std::byte> allocation : allocations)
    ::munmap(allocation.data(), allocation.size());
}

CpuDevice::~CpuDevice() {
  stop();
  if (!rests(std::chrono::milliseconds(50)))
    static_cast<void>(queue_.release()); // NOLINT(bugprone-unused-return-value): left on purpose
}

Result<std::byte *> CpuDevice::allocate(std::string_view what, uint64_t bytes) {
  STRATA_RETURN_IF_ERROR(checkUnlocked(what, bytes));
  if (bytes == 0 || bytes > uint64_t(1) << 48)
    return makeError(StatusCode::InvalidArgument, "{} asks for {} bytes", what, bytes)
        .at("device", name());
  uint64_t rounded = alignUp(bytes, pageBytes);
  // Beyond what is there the kernel would not refuse but end some process.
  if (uint64_t available = availableHostBytes(); rounded > available)
    return makeError(StatusCode::ResourceExhausted,
                     "{} takes {} bytes of memory, {} are available; {}", what, rounded, available,
                     memoryRemedy)
        .at("device", name());
  // Populated, so that what was promised is there and no page is found missing during a step.
  void *address = ::mmap(nullptr, rounded, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (address == MAP_FAILED)
    return makeError(StatusCode::ResourceExhausted,
                     "{} takes {} bytes of memory, which cannot be had ({}); {}", what, rounded,
                     std::strerror(errno), memoryRemedy)
        .at("device", name());
  queue_->allocations.emplace_back(static_cast<std::byte *>(address), rounded);
  takenBytes_ += rounded;
  return static_cast<std::byte *>(address);
}

Result<std::byte *> CpuDevice::allocateHost(std::string_view what, uint64_t bytes) {
  STRATA_RETURN_IF_ERROR(checkUnlocked(what, bytes));
  queue_->hostAllocations.push_back(std::make_unique<std::byte[]>(bytes));
  return queue_->hostAllocations.back().get();
}

Status CpuDevice::write(std::byte *to, std::span<const std::byte> bytes) {
  std::memcpy(to, bytes.data(), bytes.size());
  return {};
}

Status CpuDevice::read(std::span<std::byte> to, const std::byte *from) {
  std::memcpy(to.data(), from, to.size());
  return {};
}

Status CpuDevice::loadModule(std::span<const std::byte>) {
  return makeError(StatusCode::Internal, "a CPU's kernels are linked in; it loads no module")
      .at("device", name());
}

Result<const std::byte *> CpuDevice::placeConstant(std::string_view what,
                                                   std::span<const std::byte> bytes) {
  STRATA_RETURN_IF_ERROR(checkUnlocked(what, bytes.size()));
  return bytes.data();
}

Result<LineId> CpuDevice::prepare(std::string name, std::vector<DeviceCommand> commands) {
  STRATA_RETURN_IF_ERROR(checkUnlocked(name, 0));
  auto line = std::make_unique<Line>();
  line->name = std::move(name);
  for (const DeviceCommand &command : commands)
    line->slots.insert(line->slots.end(), command.slots.begin(), command.slots.end());
  const uint64_t *slots = line->slots.data();
  for (DeviceCommand &command : commands) {
    cpu::KernelFunction function = cpu::findKernel(command.kernel, isa_);
    if (!function)
      return makeError(StatusCode::InvalidData, "there is no kernel '{}' for {}", command.kernel,
                       cpu::isaName(isa_))
          .at("command", command.op)
          .at("device", this->name());
    line->commands.push_back({function, slots, command.items, command.bytes >= sharedBytes});
    line->ops.push_back(std::move(command.op));
    slots += command.slots.size();
  }
  queue_->lines.push_back(std::move(line));
  return LineId(queue_->lines.size() - 1);
}

Status CpuDevice::enqueue(const DeviceLaunch &launch) {
  Queue &queue = *queue_;
  if (launch.line >= queue.lines.size())
    return makeError(StatusCode::Internal, "line {} of {} launched", launch.line,
                     queue.lines.size())
        .at("device", name());
  if (queued_ - queue.ended.value() >= queue.ring.size())
    return makeError(StatusCode::Internal,
                     "{} launches are queued, which is all that there is room for",
                     queue.ring.size())
        .at("device", name());
  queue.ring[queued_ % queue.ring.size()] = &launch;
  queue.queued.advance(++queued_);
  return {};
}

Result<bool> CpuDevice::wait(const TimelineValue &value, std::chrono::nanoseconds timeout) {
  return value.timeline->wait(value.value, timeout);
}

std::string_view CpuDevice::op(LineId line, uint32_t index) const {
  return queue_->lines[line]->ops[index];
}

void CpuDevice::stop() {
  if (queue_->stop.exchange(true, std::memory_order_seq_cst))
    return;
  queue_->queued.close();
}

bool CpuDevice::rests(std::chrono::nanoseconds patience) {
  if (!queue_->isStarted)
    return true;
  timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  auto nanoseconds = patience.count() + end.tv_nsec;
  end.tv_sec += nanoseconds / 1'000'000'000;
  end.tv_nsec = nanoseconds % 1'000'000'000;
  if (pthread_timedjoin_np(queue_->thread, nullptr, &end) != 0)
    return false;
  queue_->isStarted = false;
  return true;
}

// One word, so that a reader sees a state that was: the kind, the launch's number and the index.
void CpuDevice::Queue::at(DeviceActivity::Kind kind, uint32_t number, uint32_t index) {
  state.store(uint64_t(kind) << 62 | uint64_t(number & 0x3FFFFFFF) << 32 | index,
              std::memory_order_release);
}

DeviceActivity CpuDevice::activity() const {
  const Queue &queue = *queue_;
  uint64_t state = queue.state.load(std::memory_order_acquire);
  DeviceActivity activity;
  activity.kind = DeviceActivity::Kind(state >> 62);
  uint32_t command =
      queue.observer ? queue.observed.load(std::memory_order_relaxed) : queue.pool->command();
  activity.progress = state;
  if (activity.kind == DeviceActivity::Kind::Idle)
    return activity;
  auto number = uint32_t(state >> 32) & 0x3FFFFFFF;
  // Numbers wrap in the state word only: the ring's index comes from what was queued last.
  uint32_t behind = (queued_ - number) & 0x3FFFFFFF;
  activity.launch = queue.ring[(queued_ - behind) % queue.ring.size()];
  activity.index = uint32_t(state);
  if (activity.kind == DeviceActivity::Kind::Running) {
    activity.index = command;
    activity.worker = queue.pool->busyWorker();
    activity.progress += uint64_t(command) + 1;
  }
  return activity;
}

void CpuDevice::Queue::runLine(const Line &line, LineId id, const ItemCounts &counts) {
  std::span<const PoolCommand> commands = line.commands;
  if (!observer)
    return pool->run(commands, counts, stop);
  for (uint32_t i = 0; i < commands.size() && !stop.load(std::memory_order_relaxed); ++i) {
    observed.store(i, std::memory_order_relaxed);
    observer(id, i);
    pool->run(commands.subspan(i, 1), counts, stop);
  }
  observer(id, uint32_t(commands.size()));
}

static void copyAll(const std::vector<DeviceCopy> &copies) {
  for (const DeviceCopy &copy : copies)
    if (copy.from)
      std::memcpy(copy.to, copy.from, copy.bytes);
    else
      std::memset(copy.to, 0, copy.bytes);
}

bool CpuDevice::Queue::runLaunch(uint32_t number) {
  using enum DeviceActivity::Kind;
  const DeviceLaunch &launch = *ring[number % ring.size()];
  for (uint32_t i = 0; i < launch.waits.size(); ++i) {
    at(Waiting, number, i);
    launch.waits[i].timeline->wait(launch.waits[i].value);
    if (stop.load(std::memory_order_seq_cst))
      return false;
  }
  at(Running, number, 0);
  copyAll(launch.copiesIn);
  runLine(*lines[launch.line], launch.line, launch.counts);
  if (stop.load(std::memory_order_seq_cst))
    return false;
  copyAll(launch.copiesOut);
  at(Idle, number, 0);
  ended.advance(number + 1);
  // The last signal gives `launch` back: nothing of it is looked at after.
  for (const TimelineValue signal : std::span(launch.signals.data(), launch.signals.size()))
    signal.timeline->advance(signal.value);
  return true;
}

void *CpuDevice::Queue::threadMain(void *argument) {
  Queue &queue = *static_cast<Queue *>(argument);
  for (uint32_t number = 0;; ++number) {
    queue.queued.wait(number + 1);
    if (queue.stop.load(std::memory_order_seq_cst) || !queue.runLaunch(number))
      return nullptr;
  }
}

} // namespace strata
