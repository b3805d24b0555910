// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3" (SC 2011): a keyed bijection of 128 bits, so a number is a function of its place and
// needs no state. Plain integer arithmetic, the same on every device.
#pragma once

#include <array>
#include <cstdint>

namespace strata {

constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                             std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t product0 = uint64_t(0xD2511F53) * counter[0];
    uint64_t product1 = uint64_t(0xCD9E8D57) * counter[2];
    counter = {uint32_t(product1 >> 32) ^ counter[1] ^ key[0], uint32_t(product1),
               uint32_t(product0 >> 32) ^ counter[3] ^ key[1], uint32_t(product0)};
    key[0] += 0x9E3779B9; // the golden ratio
    key[1] += 0xBB67AE85; // the square root of three
  }
  return counter;
}

} // namespace strata
