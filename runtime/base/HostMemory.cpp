#include "runtime/base/HostMemory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

namespace strata {
namespace {

constexpr uint64_t unknown = std::numeric_limits<uint64_t>::max();

/// The number behind `key` in lines of `key number ...`; the whole file's where `key` is empty.
/// Nothing where there is none, such as in "max".
std::optional<uint64_t> readNumber(const std::filesystem::path &path, std::string_view key = "") {
  std::ifstream stream(path);
  std::string word;
  while (!key.empty() && stream >> word && word != key)
    stream.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  uint64_t number;
  return stream >> number ? std::optional(number) : std::nullopt;
}

/// Left below one group's limit.
uint64_t leftIn(const std::filesystem::path &folder, const char *limitName, const char *usageName,
                const char *cacheKey) {
  auto limit = readNumber(folder / limitName), usage = readNumber(folder / usageName);
  if (!limit || !usage)
    return unknown;
  uint64_t cache = readNumber(folder / "memory.stat", cacheKey).value_or(0);
  uint64_t used = *usage - std::min(*usage, cache);
  return *limit - std::min(*limit, used);
}

} // namespace

uint64_t availableHostBytes(const HostMemoryFiles &files) {
  uint64_t available = unknown;
  if (auto kibibytes = readNumber(files.meminfo, "MemAvailable:"))
    available = *kibibytes * 1024;
  // Lines of `id:controllers:/path`; version 2 has the id 0 and names no controller. Inside a
  // container the path may be the host's, and the container's own group stands at the root.
  std::ifstream membership(files.membership);
  for (std::string line; std::getline(membership, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    bool isUnified = controllers.empty();
    if (!isUnified && controllers != "memory")
      continue;
    std::filesystem::path root = files.cgroups;
    if (!isUnified)
      root /= "memory";
    // A group's ancestors limit it too.
    std::filesystem::path path = std::filesystem::path(line.substr(second + 1)).relative_path();
    for (bool more = true; more; path = path.parent_path()) {
      more = !path.empty();
      uint64_t left = isUnified
                          ? leftIn(root / path, "memory.max", "memory.current", "inactive_file")
                          : leftIn(root / path, "memory.limit_in_bytes", "memory.usage_in_bytes",
                                   "total_inactive_file");
      available = std::min(available, left);
    }
  }
  return available;
}

} // namespace strata
