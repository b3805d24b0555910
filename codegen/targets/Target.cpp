#include "codegen/targets/Target.h"

#include <charconv>
#include <cmath>
#include <sstream>
#include <vector>

namespace strata {
namespace {

// Typical of two cores of a server; only ratios between layers matter to the partition.
constexpr double cpuBytesPerSecond = 20e9;
constexpr double cpuFlopsPerSecond = 60e9;
// A launch reads all weights, about the work of a few rows; commands have items for valid rows
// only.
constexpr int64_t cpuLaunchRows = 4;
constexpr int64_t cpuPaddedRowCost = 0;

// A GPU's step reads all weights whatever its rows, and its matrix units want some hundred rows
// before they are the bound; empty rows of a bucket are computed.
constexpr int64_t gpuLaunchRows = 64;
constexpr int64_t gpuPaddedRowCost = 1;

Target cpuTarget(cpu::Isa isa) {
  std::string name = "cpu:" + std::string(cpu::isaName(isa));
  KernelLibrary library = *KernelLibrary::of(name);
  return {std::move(name),   library,       cpuBytesPerSecond,
          cpuFlopsPerSecond, cpuLaunchRows, cpuPaddedRowCost};
}

Target gpuTarget(const std::string &name, const KernelLibrary &library) {
  return {
      name,          library,         library.gpu()->bytesPerSecond, library.gpu()->flopsPerSecond,
      gpuLaunchRows, gpuPaddedRowCost};
}

std::vector<std::string> splitAt(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(part);
  return parts;
}

} // namespace

Result<uint64_t> parseSize(const std::string &text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string unit(end, text.data() + text.size());
  double scale = unit.empty() || unit == "B" ? 1
                 : unit == "KiB"             ? 0x1p10
                 : unit == "MiB"             ? 0x1p20
                 : unit == "GiB"             ? 0x1p30
                 : unit == "TiB"             ? 0x1p40
                                             : 0;
  if (error != std::errc() || scale == 0 || !(value > 0) || value * scale >= 0x1p62)
    return makeError(StatusCode::InvalidArgument,
                     "'{}' is not a size; write a number with KiB, MiB, GiB or TiB", text);
  return static_cast<uint64_t>(std::llround(value * scale));
}

namespace {

Result<DeviceRequest> parseGpu(const std::string &text, const std::vector<std::string> &parts) {
  std::string name = parts.size() > 1 ? "cuda:" + parts[1] : "cuda:";
  std::optional<KernelLibrary> library = KernelLibrary::of(name);
  if (!library)
    return makeError(StatusCode::InvalidArgument,
                     "device '{}' is of no architecture that is known; known targets: {}", text,
                     KernelLibrary::knownTargets());
  DeviceRequest request{gpuTarget(name, *library), 0};
  if (parts.size() > 3)
    return makeError(StatusCode::InvalidArgument, "device '{}': write cuda:ARCH[:SIZE]", text);
  if (parts.size() == 3) {
    STRATA_ASSIGN_OR_RETURN(request.bytes, parseSize(parts[2]));
  }
  return request;
}

} // namespace

Result<DeviceRequest> parseDevice(const std::string &text) {
  std::vector<std::string> parts = splitAt(text, ':');
  if (!parts.empty() && parts[0] == "cuda")
    return parseGpu(text, parts);
  if (parts.empty() || parts[0] != "cpu")
    return makeError(StatusCode::InvalidArgument,
                     "'{}' is not a device; write cpu[:ISA][:SIZE] or cuda:ARCH[:SIZE]", text);
  DeviceRequest request{cpuTarget(cpu::hostIsa()), 0};
  bool isaGiven = false, sizeGiven = false;
  for (size_t i = 1; i < parts.size(); ++i) {
    cpu::Isa isa;
    if (!isaGiven && !sizeGiven && cpu::parseIsa(parts[i], isa)) {
      request.target = cpuTarget(isa);
      isaGiven = true;
      continue;
    }
    if (sizeGiven || (!parts[i].empty() && parts[i][0] > '9'))
      return makeError(StatusCode::InvalidArgument,
                       "device '{}': '{}' is no instruction set (x86-64-v3, x86-64-v4) and no size",
                       text, parts[i]);
    STRATA_ASSIGN_OR_RETURN(request.bytes, parseSize(parts[i]));
    sizeGiven = true;
  }
  return request;
}

Result<Target> findTarget(const std::string &name) {
  STRATA_ASSIGN_OR_RETURN(DeviceRequest request, parseDevice(name));
  if (request.target.name != name)
    return makeError(StatusCode::InvalidArgument, "'{}' is not a target; did you mean '{}'?", name,
                     request.target.name);
  return request.target;
}

} // namespace strata
