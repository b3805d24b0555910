#include "runtime/device/CpuDevice.h"

#include <cerrno>
#include <cstring>

#include <sys/mman.h>

#include "runtime/base/CheckedMath.h"

namespace strata {
namespace {

constexpr uint64_t pageBytes = 4096;

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
                                                     std::shared_ptr<WorkerPool> pool) {
  Result<cpu::Isa> isa = parseTarget(target);
  if (!isa.isOk())
    return std::move(isa).status().at("device", name);
  return std::unique_ptr<CpuDevice>(new CpuDevice(std::move(name), *isa, std::move(pool)));
}

CpuDevice::~CpuDevice() {
  if (pool_->isStuck()) {
    // A worker may still write here: leave its memory and its commands.
    for (auto &line : lines_)
      (void)line.release();
    return;
  }
  for (std::span<std::byte> allocation : allocations_)
    ::munmap(allocation.data(), allocation.size());
}

Result<std::byte *> CpuDevice::allocate(std::string_view what, uint64_t bytes) {
  STRATA_RETURN_IF_ERROR(checkUnlocked(what, bytes));
  if (bytes == 0 || bytes > uint64_t(1) << 48)
    return makeError(StatusCode::InvalidArgument, "{} asks for {} bytes", what, bytes)
        .at("device", name());
  uint64_t rounded = alignUp(bytes, pageBytes);
  // Populated, so that what was promised is there and no page is found missing during a step.
  void *address = ::mmap(nullptr, rounded, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (address == MAP_FAILED)
    return makeError(StatusCode::ResourceExhausted, "{} takes {} bytes, which cannot be had: {}",
                     what, rounded, std::strerror(errno))
        .at("device", name());
  allocations_.emplace_back(static_cast<std::byte *>(address), rounded);
  takenBytes_ += rounded;
  return static_cast<std::byte *>(address);
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
    line->commands.push_back({function, slots, command.items});
    line->ops.push_back(std::move(command.op));
    slots += command.slots.size();
  }
  lines_.push_back(std::move(line));
  return LineId(lines_.size() - 1);
}

std::optional<Stall> CpuDevice::run(LineId id, const ItemCounts &counts,
                                    std::chrono::nanoseconds stall) {
  std::span<const PoolCommand> commands = lines_[id]->commands;
  if (!observer_)
    return pool_->run(commands, counts, stall);
  for (uint32_t i = 0; i < commands.size(); ++i) {
    observer_(id, i);
    if (auto stalled = pool_->run(commands.subspan(i, 1), counts, stall))
      return Stall{i, stalled->worker};
  }
  observer_(id, uint32_t(commands.size()));
  return std::nullopt;
}

Status CpuDevice::launch(LineId id, const ItemCounts &counts, std::chrono::nanoseconds stall) {
  if (id >= lines_.size())
    return makeError(StatusCode::Internal, "line {} of {} launched", id, lines_.size())
        .at("device", name());
  if (pool_->isStuck())
    return makeError(StatusCode::FailedPrecondition,
                     "an earlier launch never ended; the process has to be started again")
        .at("line", lines_[id]->name)
        .at("device", name());
  if (auto stalled = run(id, counts, stall))
    return makeError(StatusCode::DeadlineExceeded,
                     "worker {} of {} has not ended command {} ({}) within {:.1f} s",
                     stalled->worker, pool_->workers(), stalled->command,
                     lines_[id]->ops[stalled->command],
                     std::chrono::duration<double>(stall).count())
        .at("line", lines_[id]->name)
        .at("device", name());
  return {};
}

} // namespace strata
