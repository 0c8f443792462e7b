// Division by numbers that are known when a kernel is prepared.
#pragma once

#include "language.h"

namespace plumb::cuda {

/// Divides by a multiplication and a shift where the number is below 2^31 (Granlund, Montgomery: Division by invariant
/// integers using multiplication; PLDI'94), and plainly where it is not.
struct Divisor {
  int64_t by = 1;
  uint32_t factor = 1, shift = 0;

  Divisor() = default;
  explicit Divisor(int64_t d) : by(d) {
    if (d < 1 || d > 0x7fffffff) {
      shift = kPlain;
      return;
    }
    while ((int64_t{1} << shift) < d) ++shift;
    factor = static_cast<uint32_t>(
        ((uint64_t{1} << 32) * ((uint64_t{1} << shift) - static_cast<uint64_t>(d))) / static_cast<uint64_t>(d) + 1);
  }
  /// The quotient of a number of at least 0.
  __device__ int64_t quotient(int64_t n) const {
    if (shift == kPlain || n > 0x7fffffff) return n / by;
    const auto low = static_cast<uint32_t>(n);
    const auto high = static_cast<uint32_t>((uint64_t{low} * factor) >> 32);
    return (high + low) >> shift;
  }
  /// The same, and n becomes the remainder.
  __device__ int64_t divide(int64_t& n) const {
    const int64_t q = quotient(n);
    n -= q * by;
    return q;
  }

 private:
  static constexpr uint32_t kPlain = 64;
};

}  // namespace plumb::cuda
