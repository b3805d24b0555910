#include "runtime/device/cuda/CudaDevice.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "codegen/targets/cuda/CudaTarget.h"
#include "runtime/base/CheckedMath.h"
#include "runtime/device/cuda/Driver.h"
#include "runtime/device/cuda/Gemm.h"
#include "runtime/device/cuda/Line.h"

namespace strata::cuda {
namespace {

constexpr uint64_t alignment = 4096;
/// How long a waiter polls before it sleeps: longer than the host takes between two steps.
constexpr std::chrono::milliseconds polling{20};

/// Polls `isDone` for a while; whether it came true.
template <class Condition> bool poll(std::chrono::nanoseconds duration, Condition isDone) {
  auto end = std::chrono::steady_clock::now() + duration;
  do
    for (int i = 0; i < 64; ++i) {
      if (isDone())
        return true;
      __builtin_ia32_pause();
    }
  while (std::chrono::steady_clock::now() < end);
  return false;
}

class CudaDevice final : public Device {
public:
  CudaDevice(std::string name, std::unique_ptr<const Driver> driver, const CudaTarget &target,
             const CudaOptions &options)
      : Device(std::move(name)), owned_(std::move(driver)), driver_(*owned_), target_(target),
        options_(options), ring_(options.depth) {}
  ~CudaDevice() override;

  Status open(uint32_t gpu);

  uint32_t workers() const override { return options_.workers; }
  bool sharesHostMemory() const override { return false; }
  Result<std::byte *> allocate(std::string_view what, uint64_t bytes) override;
  Result<std::byte *> allocateHost(std::string_view what, uint64_t bytes) override;
  Result<const std::byte *> placeConstant(std::string_view what,
                                          std::span<const std::byte> bytes) override;
  Status write(std::byte *to, std::span<const std::byte> bytes) override;
  Status read(std::span<std::byte> to, const std::byte *from) override;
  Status loadModule(std::span<const std::byte> code) override;
  Result<LineId> prepare(std::string name, std::vector<DeviceCommand> commands) override;
  Status enqueue(const DeviceLaunch &launch) override;
  Result<bool> wait(const TimelineValue &value, std::chrono::nanoseconds timeout) override;
  DeviceActivity activity() const override;
  std::string_view op(LineId line, uint32_t index) const override;
  void stop() override;
  bool rests(std::chrono::nanoseconds patience) override;

private:
  Status check(CUresult result, std::string_view call) const {
    if (result == CUDA_SUCCESS)
      return {};
    return driver_.check(result, call).at("device", name());
  }
  /// The context is the calling thread's: several devices may be called from one thread.
  Status enter() const { return check(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }
  void run();
  Status runLaunches();
  bool isStopped() const { return isStopped_.load(std::memory_order_seq_cst); }
  bool isReady(uint32_t number) const; ///< Whether launch `number` has nothing to wait for.
  void awaitOthers(uint32_t number);
  Status submit(uint32_t number);
  CUresult query(uint32_t number) const;
  void end(uint32_t number);
  void at(DeviceActivity::Kind kind, uint32_t number, uint32_t index);

  std::unique_ptr<const Driver> owned_;
  const Driver &driver_;
  const CudaTarget &target_;
  CudaOptions options_;
  CUdevice gpu_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr, captureStream_ = nullptr;
  std::unique_ptr<GemmLibrary> gemms_; ///< Once a line has a product.
  std::array<CUevent, 2> events_ = {}; ///< The ends of the launches on the stream, in turn.
  CUmodule module_ = nullptr;
  std::vector<CUdeviceptr> allocations_;
  std::vector<void *> hostAllocations_;
  std::vector<std::unique_ptr<Line>> lines_;

  std::vector<const DeviceLaunch *> ring_; ///< Launch n lies at n % size.
  Timeline issued_, ended_, rested_;       ///< Launches ever queued and ended; 1 at rest.
  std::atomic<bool> isStopped_{false}, hasFailed_{false};
  std::atomic<bool> isAbandoned_{false}; ///< A launch did not end: what it touches must stay.
  std::atomic<uint64_t> state_{0};       ///< Kind, launch and wait, in one word.
  Status failure_;                       ///< Written once, before hasFailed_.
  uint32_t queued_ = 0;
  std::thread thread_;
};

Status CudaDevice::open(uint32_t gpu) {
  STRATA_RETURN_IF_ERROR(check(driver_.cuDeviceGet(&gpu_, int(gpu)), "cuDeviceGet"));
  STRATA_RETURN_IF_ERROR(
      check(driver_.cuDevicePrimaryCtxRetain(&context_, gpu_), "cuDevicePrimaryCtxRetain"));
  STRATA_RETURN_IF_ERROR(enter());
  STRATA_RETURN_IF_ERROR(
      check(driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
  STRATA_RETURN_IF_ERROR(
      check(driver_.cuStreamCreate(&captureStream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
  for (CUevent &event : events_)
    STRATA_RETURN_IF_ERROR(
        check(driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate"));
  thread_ = std::thread([this] { run(); });
  return {};
}

CudaDevice::~CudaDevice() {
  stop();
  if (thread_.joinable())
    thread_.join();
  if (!context_ || isAbandoned_ || driver_.cuCtxSetCurrent(context_) != CUDA_SUCCESS)
    return;
  // What is left over is the context's, which ends with its last device.
  lines_.clear();
  gemms_.reset();
  for (CUdeviceptr allocation : allocations_)
    (void)driver_.cuMemFree(allocation);
  for (void *allocation : hostAllocations_)
    (void)driver_.cuMemFreeHost(allocation);
  if (module_)
    (void)driver_.cuModuleUnload(module_);
  for (CUevent event : events_)
    if (event)
      (void)driver_.cuEventDestroy(event);
  for (CUstream stream : {stream_, captureStream_})
    if (stream)
      (void)driver_.cuStreamDestroy(stream);
  (void)driver_.cuDevicePrimaryCtxRelease(gpu_);
}

Result<std::byte *> CudaDevice::allocate(std::string_view what, uint64_t bytes) {
  STRATA_RETURN_IF_ERROR(checkUnlocked(what, bytes));
  if (bytes == 0 || bytes > uint64_t(1) << 48)
    return makeError(StatusCode::InvalidArgument, "{} asks for {} bytes", what, bytes)
        .at("device", name());
  STRATA_RETURN_IF_ERROR(enter());
  uint64_t rounded = alignUp(bytes, alignment);
  CUdeviceptr address = 0;
  if (Status status = check(driver_.cuMemAlloc(&address, rounded), "cuMemAlloc"); !status.isOk()) {
    size_t free = 0, total = 0;
    (void)driver_.cuMemGetInfo(&free, &total);
    if (status.code() != StatusCode::ResourceExhausted)
      return status;
    return makeError(StatusCode::ResourceExhausted,
                     "{} takes {} bytes, of which the GPU has {} left of {}; {}", what, rounded,
                     free, total, memoryRemedy)
        .at("device", name());
  }
  allocations_.push_back(address);
  takenBytes_ += rounded;
  STRATA_RETURN_IF_ERROR(check(driver_.cuMemsetD8(address, 0, rounded), "cuMemsetD8"));
  return reinterpret_cast<std::byte *>(address);
}

Result<std::byte *> CudaDevice::allocateHost(std::string_view what, uint64_t bytes) {
  STRATA_RETURN_IF_ERROR(checkUnlocked(what, bytes));
  STRATA_RETURN_IF_ERROR(enter());
  void *address = nullptr;
  // Pinned, so that copies run beside the host; portable, so that any GPU's do.
  if (Status status = check(
          driver_.cuMemHostAlloc(&address, std::max<uint64_t>(bytes, 1), CU_MEMHOSTALLOC_PORTABLE),
          "cuMemHostAlloc");
      !status.isOk())
    return std::move(status).at("memory", what);
  hostAllocations_.push_back(address);
  std::memset(address, 0, bytes);
  return static_cast<std::byte *>(address);
}

Result<const std::byte *> CudaDevice::placeConstant(std::string_view what,
                                                    std::span<const std::byte> bytes) {
  STRATA_ASSIGN_OR_RETURN(std::byte * address, allocate(what, bytes.size()));
  STRATA_RETURN_IF_ERROR(write(address, bytes));
  return address;
}

Status CudaDevice::write(std::byte *to, std::span<const std::byte> bytes) {
  STRATA_RETURN_IF_ERROR(enter());
  return check(driver_.cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(to), bytes.data(), bytes.size()),
               "cuMemcpyHtoD");
}

Status CudaDevice::read(std::span<std::byte> to, const std::byte *from) {
  STRATA_RETURN_IF_ERROR(enter());
  return check(driver_.cuMemcpyDtoH(to.data(), reinterpret_cast<CUdeviceptr>(from), to.size()),
               "cuMemcpyDtoH");
}

Status CudaDevice::loadModule(std::span<const std::byte> code) {
  STRATA_RETURN_IF_ERROR(checkUnlocked("a module", code.size()));
  STRATA_RETURN_IF_ERROR(enter());
  if (module_)
    return makeError(StatusCode::Internal, "a second module is loaded").at("device", name());
  return check(driver_.cuModuleLoadData(&module_, code.data()), "cuModuleLoadData");
}

Result<LineId> CudaDevice::prepare(std::string name, std::vector<DeviceCommand> commands) {
  STRATA_RETURN_IF_ERROR(checkUnlocked(name, 0));
  STRATA_RETURN_IF_ERROR(enter());
  bool hasProduct = std::ranges::any_of(
      commands, [](const DeviceCommand &each) { return each.gemm.has_value(); });
  if (hasProduct && !gemms_) {
    Result<std::unique_ptr<GemmLibrary>> opened = GemmLibrary::open();
    if (!opened.isOk())
      return std::move(opened).status().at("device", this->name());
    gemms_ = std::move(*opened);
  }
  Result<std::unique_ptr<Line>> line =
      Line::create(driver_, module_, std::move(name), std::move(commands),
                   {.context = context_,
                    .stream = stream_,
                    .captureStream = captureStream_,
                    .gemms = gemms_.get(),
                    .useGraph = options_.useGraphs,
                    .dependentLaunch = target_.features.dependentLaunch});
  if (!line.isOk())
    return std::move(line).status().at("device", this->name());
  lines_.push_back(std::move(*line));
  return LineId(lines_.size() - 1);
}

Status CudaDevice::enqueue(const DeviceLaunch &launch) {
  if (hasFailed_.load(std::memory_order_acquire))
    return failure_;
  if (launch.line >= lines_.size())
    return makeError(StatusCode::Internal, "line {} of {} launched", launch.line, lines_.size())
        .at("device", name());
  if (queued_ - ended_.value() >= ring_.size())
    return makeError(StatusCode::Internal,
                     "{} launches are queued, which is all that there is room for", ring_.size())
        .at("device", name());
  ring_[queued_ % ring_.size()] = &launch;
  issued_.advance(++queued_);
  return {};
}

Result<bool> CudaDevice::wait(const TimelineValue &value, std::chrono::nanoseconds timeout) {
  auto isOver = [&] {
    return value.timeline->reached(value.value) || hasFailed_.load(std::memory_order_acquire);
  };
  if (!poll(std::min<std::chrono::nanoseconds>(timeout, polling), isOver))
    (void)value.timeline->wait(value.value, timeout);
  if (value.timeline->reached(value.value))
    return true;
  if (hasFailed_.load(std::memory_order_acquire))
    return failure_;
  return false;
}

void CudaDevice::at(DeviceActivity::Kind kind, uint32_t number, uint32_t index) {
  state_.store(uint64_t(kind) << 62 | uint64_t(number & 0x3FFFFFFF) << 32 | index,
               std::memory_order_release);
}

DeviceActivity CudaDevice::activity() const {
  uint64_t state = state_.load(std::memory_order_acquire);
  DeviceActivity activity;
  activity.kind = DeviceActivity::Kind(state >> 62);
  activity.progress = state;
  if (activity.kind == DeviceActivity::Kind::Idle)
    return activity;
  uint32_t behind = (queued_ - (uint32_t(state >> 32) & 0x3FFFFFFF)) & 0x3FFFFFFF;
  activity.launch = ring_[(queued_ - behind) % ring_.size()];
  activity.index = uint32_t(state);
  return activity;
}

std::string_view CudaDevice::op(LineId line, uint32_t) const { return lines_[line]->name(); }

void CudaDevice::stop() {
  if (isStopped_.exchange(true, std::memory_order_seq_cst))
    return;
  issued_.close();
}

bool CudaDevice::rests(std::chrono::nanoseconds patience) {
  return !thread_.joinable() ||
         (rested_.wait(1, patience) && !isAbandoned_.load(std::memory_order_acquire));
}

bool CudaDevice::isReady(uint32_t number) const {
  const DeviceLaunch &launch = *ring_[number % ring_.size()];
  return std::all_of(launch.waits.begin(), launch.waits.end(),
                     [](const TimelineValue &wait) { return wait.timeline->reached(wait.value); });
}

void CudaDevice::awaitOthers(uint32_t number) {
  const DeviceLaunch &launch = *ring_[number % ring_.size()];
  for (uint32_t i = 0; i < launch.waits.size() && !isStopped(); ++i) {
    at(DeviceActivity::Kind::Waiting, number, i);
    const TimelineValue &wait = launch.waits[i];
    if (!poll(polling, [&] { return wait.timeline->reached(wait.value); }))
      wait.timeline->wait(wait.value);
  }
}

Status CudaDevice::submit(uint32_t number) {
  const DeviceLaunch &launch = *ring_[number % ring_.size()];
  auto copyAll = [&](const std::vector<DeviceCopy> &copies) -> Status {
    for (const DeviceCopy &copy : copies) {
      auto to = reinterpret_cast<CUdeviceptr>(copy.to);
      auto from = reinterpret_cast<CUdeviceptr>(copy.from);
      STRATA_RETURN_IF_ERROR(
          copy.from
              ? check(driver_.cuMemcpyAsync(to, from, copy.bytes, stream_), "cuMemcpyAsync")
              : check(driver_.cuMemsetD8Async(to, 0, copy.bytes, stream_), "cuMemsetD8Async"));
    }
    return {};
  };
  STRATA_RETURN_IF_ERROR(copyAll(launch.copiesIn));
  STRATA_RETURN_IF_ERROR(lines_[launch.line]->launch());
  STRATA_RETURN_IF_ERROR(copyAll(launch.copiesOut));
  return check(driver_.cuEventRecord(events_[number % events_.size()], stream_), "cuEventRecord");
}

CUresult CudaDevice::query(uint32_t number) const {
  return driver_.cuEventQuery(events_[number % events_.size()]);
}

void CudaDevice::end(uint32_t number) {
  const DeviceLaunch &launch = *ring_[number % ring_.size()];
  at(DeviceActivity::Kind::Idle, number, 0);
  ended_.advance(number + 1);
  for (const TimelineValue &signal : launch.signals) // the last gives `launch` back
    signal.timeline->advance(signal.value);
}

// The stream runs launches in order by itself, so the next one is submitted while one runs, if it
// waits for no one: the GPU goes from one to the next without the host.
Status CudaDevice::runLaunches() {
  uint32_t submitted = 0, ended = 0;
  auto named = [&](Status status, uint32_t number) {
    return std::move(status)
        .at("line", lines_[ring_[number % ring_.size()]->line]->name())
        .at("device", name());
  };
  while (true) {
    if (submitted == ended) {
      if (!poll(polling, [&] { return issued_.reached(submitted + 1); }))
        issued_.wait(submitted + 1);
      if (!isStopped())
        awaitOthers(submitted);
    }
    if (isStopped()) {
      isAbandoned_.store(submitted != ended, std::memory_order_release);
      return {};
    }
    if (submitted - ended < events_.size() && issued_.reached(submitted + 1) &&
        isReady(submitted)) {
      if (submitted == ended)
        at(DeviceActivity::Kind::Running, submitted, 0);
      if (Status status = submit(submitted); !status.isOk()) {
        // What an earlier launch did may come up in any call after it.
        CUresult earlier = CUDA_SUCCESS;
        while (ended != submitted && !isStopped() &&
               (earlier = query(ended)) == CUDA_ERROR_NOT_READY) {
        }
        bool isEarlier = ended != submitted && earlier != CUDA_SUCCESS;
        return named(std::move(status), isEarlier ? ended : submitted);
      }
      ++submitted;
    }
    CUresult result = query(ended);
    if (result == CUDA_ERROR_NOT_READY)
      continue;
    if (Status status = check(result, "running the line"); !status.isOk())
      return named(std::move(status), ended);
    end(ended++);
    if (submitted != ended)
      at(DeviceActivity::Kind::Running, ended, 0);
  }
}

void CudaDevice::run() {
  Status status = enter();
  if (status.isOk())
    status = runLaunches();
  if (!status.isOk()) {
    failure_ = std::move(status);
    hasFailed_.store(true, std::memory_order_release);
  }
  rested_.advance(1);
}

} // namespace

Result<std::unique_ptr<Device>> createCudaDevice(std::string name, uint32_t gpu,
                                                 std::string_view target,
                                                 const CudaOptions &options) {
  const CudaTarget *known = findCudaTarget(target);
  if (!known)
    return makeError(StatusCode::Unimplemented, "target '{}' is no GPU that this build runs",
                     target)
        .at("device", name);
  Result<std::unique_ptr<const Driver>> driver = openDriver();
  if (!driver.isOk())
    return std::move(driver).status().at("device", name);
  STRATA_ASSIGN_OR_RETURN(std::vector<GpuInfo> gpus, listGpus());
  if (gpu >= gpus.size())
    return makeError(StatusCode::FailedPrecondition,
                     "GPU {} is asked for but this machine has {}; name one for each stage, such "
                     "as --devices cuda:0,cuda:0",
                     gpu, gpus.size())
        .at("device", name);
  // Code runs on later chips of its generation; code for one with features of its own, there alone.
  uint32_t found = gpus[gpu].computeCapability, wanted = known->computeCapability;
  bool isExact = known->compilerName != known->name;
  if (found / 10 != wanted / 10 || (isExact ? found != wanted : found < wanted))
    return makeError(StatusCode::FailedPrecondition,
                     "the plan was compiled for {} but {} is an sm_{}; compile it with --devices "
                     "cuda:sm_{}",
                     target, gpus[gpu].name, found, found)
        .at("device", name);
  auto device = std::make_unique<CudaDevice>(std::move(name), std::move(*driver), *known, options);
  STRATA_RETURN_IF_ERROR(device->open(gpu));
  return std::unique_ptr<Device>(std::move(device));
}

} // namespace strata::cuda
