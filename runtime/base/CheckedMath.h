// Overflow-checked size arithmetic: every size read from a file passes through here before use.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>

namespace strata {

/// a * b, or nothing where the product does not fit.
template <std::unsigned_integral T> constexpr std::optional<T> checkedMul(T a, T b) {
  T product;
  if (__builtin_mul_overflow(a, b, &product))
    return std::nullopt;
  return product;
}

/// a + b, or nothing where the sum does not fit.
template <std::unsigned_integral T> constexpr std::optional<T> checkedAdd(T a, T b) {
  T sum;
  if (__builtin_add_overflow(a, b, &sum))
    return std::nullopt;
  return sum;
}

/// The least multiple of `alignment` (a power of two) that is >= `value`. The caller knows that the
/// result fits.
constexpr uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

/// ceil(a / b) for b > 0.
constexpr uint64_t ceilDiv(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

} // namespace strata
