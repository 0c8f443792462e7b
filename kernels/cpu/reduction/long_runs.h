// Long runs of neighbouring elements, reduced from several places at once.
#pragma once

#include <algorithm>
#include <array>

#include "kernels/cpu/element.h"
#include "kernels/cpu/reduction/simd_reduce.h"

namespace plumb::cpu {

/// Runs of at least this many elements are read so.
inline constexpr int64_t kLongRun = 8192;

/// The total of n elements, n a multiple of 64, by Op. A quarter of them is read beside the others, since a core that
/// reads one place after another does not get what memory gives.
template <class T, class Op>
typename Op::Total total_of_long_run(const T* x, int64_t n) {
  using C = Compute<T>;
  using Total = typename Op::Total;
  constexpr int64_t kPlaces = 4, kLanes = 64 / static_cast<int64_t>(sizeof(C));
  const int64_t each = n / kPlaces;
  Total total = Op::kStart;
  for (int64_t begin = 0; begin < each; begin += kShortSum / kPlaces) {
    C lane[kPlaces][kLanes];
    std::fill_n(lane[0], kPlaces * kLanes, Op::kStart);
    for (int64_t i = begin; i < std::min(each, begin + kShortSum / kPlaces); i += kLanes) {
      for (int64_t p = 0; p < kPlaces; ++p) {
        const T* from = x + p * each + i;
        for (int64_t k = 0; k < kLanes; ++k) lane[p][k] = Op::combine(lane[p][k], load(from + k));
      }
    }
    for (int64_t k = 0; k < kLanes; ++k) {
      for (int64_t p = 1; p < kPlaces; ++p) lane[0][k] = Op::combine(lane[0][k], lane[p][k]);
    }
    for (int64_t width = kLanes / 2; width > 0; width /= 2) {
      for (int64_t k = 0; k < width; ++k) lane[0][k] = Op::combine(lane[0][k], lane[0][k + width]);
    }
    total = Op::total(total, static_cast<Total>(lane[0][0]));
  }
  return total;
}

}  // namespace plumb::cpu
