// How much memory this process may still take.
#pragma once

#include <cstdint>
#include <string>

namespace strata {

/// Where the system says it; other places are for tests.
struct HostMemoryFiles {
  std::string meminfo = "/proc/meminfo";
  std::string membership = "/proc/self/cgroup";
  std::string cgroups = "/sys/fs/cgroup";
};

/// Bytes that can be taken without the kernel ending a process for them: what the machine has
/// available and what is left below the limit of each control group (version 1 or 2) that the
/// process is in, page cache that can be dropped counted as free. UINT64_MAX where nothing says.
uint64_t availableHostBytes(const HostMemoryFiles &files = {});

} // namespace strata
