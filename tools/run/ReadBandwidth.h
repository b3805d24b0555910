// How fast this machine reads memory: the bound of what reads every weight once a token.
#pragma once

#include <cstdint>
#include <vector>

namespace strata::run {

class ReadBandwidth {
public:
  /// Fills memory that is larger than caches are, a part for each thread.
  explicit ReadBandwidth(uint32_t threads);

  /// Bytes per second at which all threads together read it once.
  double measure() const;

private:
  std::vector<std::vector<uint64_t>> parts_;
};

} // namespace strata::run
