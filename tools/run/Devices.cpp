// strata-run devices: what this machine offers.
#include <fstream>
#include <memory>
#include <string>

#include <sched.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "codegen/cpu/KernelTable.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "tools/run/Commands.h"

namespace strata::run {
namespace {

std::string cpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (size_t colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown";
}

/// Cores that this process may run on, which a container can make fewer than the machine's.
int usableCores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

Status devices(bool json) {
  bool supported = cpu::hostRunsAny();
  std::string isa = supported ? std::string(cpu::isaName(cpu::hostIsa())) : "none";
  uint64_t bytes = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
  // A machine without a driver, or a build without CUDA, has no GPU to list.
  std::vector<cuda::GpuInfo> gpus;
  if (auto found = cuda::listGpus(); found.isOk())
    gpus = *std::move(found);
  if (json) {
    nlohmann::ordered_json list = {{{"device", "cpu"},
                                    {"model", cpuModel()},
                                    {"isa", isa},
                                    {"cores", usableCores()},
                                    {"memory_bytes", bytes}}};
    for (const cuda::GpuInfo &gpu : gpus)
      list.push_back({{"device", fmt::format("cuda:{}", gpu.index)},
                      {"model", gpu.name},
                      {"uuid", gpu.uuid},
                      {"arch", fmt::format("sm_{}", gpu.computeCapability)},
                      {"memory_bytes", gpu.totalBytes}});
    fmt::print("{}\n", list.dump(2));
    return Status::ok();
  }
  fmt::print("cpu   {}\n      instruction set {}, cores {}, memory {:.1f} GiB\n", cpuModel(),
             supported ? isa : "below x86-64-v3 (AVX2, FMA, F16C): plans do not run here",
             usableCores(), static_cast<double>(bytes) / (1 << 30));
  for (const cuda::GpuInfo &gpu : gpus)
    fmt::print("cuda:{} {}\n      {}, sm_{}, memory {:.1f} GiB\n", gpu.index, gpu.name, gpu.uuid,
               gpu.computeCapability, static_cast<double>(gpu.totalBytes) / (1 << 30));
  return Status::ok();
}

} // namespace

Action addDevices(CLI::App &command) {
  auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "Print a JSON list");
  return [json] { return devices(*json); };
}

} // namespace strata::run
