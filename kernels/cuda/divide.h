// Division by numbers that are known when a kernel is prepared.
#pragma once

#include "language.h"

namespace plumb::cuda {

/// Divides by a multiplication and a shift (Granlund, Montgomery: Division by invariant integers using multiplication;
/// PLDI'94): of 32 bits where number and divisor are below 2^31, and of 64 where one is not. A division of the
/// hardware's would be a call, around which registers lie in memory.
struct Divisor {
  int64_t by = 1;
  uint64_t wide_factor = 1;
  uint32_t factor = 1;
  uint8_t shift = 0, wide_shift = 0;

  Divisor() = default;
  /// Of nothing by 0, too.
  explicit Divisor(int64_t by_what) : by(by_what) {
    const int64_t d = by < 1 ? 1 : by;
    while (wide_shift < 63 && (int64_t{1} << wide_shift) < d) ++wide_shift;
    wide_factor = static_cast<uint64_t>(factor_of<64>(d, wide_shift));
    shift = d > kMostNarrow ? kNone : wide_shift;
    if (shift != kNone) factor = static_cast<uint32_t>(factor_of<32>(d, shift));
  }
  /// The quotient of a number of at least 0.
  __device__ int64_t quotient(int64_t n) const {
    if (shift != kNone && n <= kMostNarrow) {
      const auto low = static_cast<uint32_t>(n);
      const auto high = static_cast<uint32_t>((uint64_t{low} * factor) >> 32);
      return (high + low) >> shift;
    }
    const auto low = static_cast<uint64_t>(n);
    return static_cast<int64_t>((high_half(low, wide_factor) + low) >> wide_shift);
  }
  /// The same, and n becomes the remainder.
  __device__ int64_t divide(int64_t& n) const {
    const int64_t q = quotient(n);
    n -= q * by;
    return q;
  }

 private:
  static constexpr int64_t kMostNarrow = 0x7fffffff;
  static constexpr uint8_t kNone = 255;
  __extension__ using Wide = unsigned __int128;
  template <int kBits>
  static Wide factor_of(int64_t d, int shift) {
    return ((Wide{1} << shift) - static_cast<Wide>(d)) * (Wide{1} << kBits) / static_cast<Wide>(d) + 1;
  }
};

}  // namespace plumb::cuda
