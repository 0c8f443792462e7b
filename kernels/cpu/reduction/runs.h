// Runs of neighbouring elements, each reduced to one number; short ones several at a time.
#pragma once

#include <algorithm>

#include "kernels/cpu/element.h"
#include "kernels/cpu/movement/transpose_tiles.h"
#include "kernels/cpu/reduction/simd_reduce.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/unset.h"

namespace plumb::cpu {

/// The total by Op of n elements, n a multiple of kLanes, of which so many are added side by side. They are fetched a
/// page before, since what a core fetches by itself does not use all that caches and memory give.
template <class T, class Op, int64_t kLanes>
typename Op::Total total_of_lanes(const T* x, int64_t n) {
  using C = Compute<T>;
  constexpr int64_t kShort = kShortSum / 64 * kLanes, kPage = 4096, kLine = 64;
  typename Op::Total total = Op::kStart;
  for (int64_t begin = 0; begin < n; begin += kShort) {
    C lane[kLanes];
    std::fill_n(lane, kLanes, Op::kStart);
    for (int64_t i = begin; i < std::min(n, begin + kShort); i += kLanes) {
      for (int64_t at = 0; at < kLanes * static_cast<int64_t>(sizeof(T)); at += kLine) simd::fetch(x + i, kPage + at);
      for (int64_t k = 0; k < kLanes; ++k) lane[k] = Op::combine(lane[k], load(x + i + k));
    }
    for (int64_t width = kLanes / 2; width > 0; width /= 2) {
      for (int64_t k = 0; k < width; ++k) lane[k] = Op::combine(lane[k], lane[k + width]);
    }
    total = Op::total(total, static_cast<typename Op::Total>(lane[0]));
  }
  return total;
}

/// The total of a run of n elements. A short one has few lanes to add up at its end.
template <class T, class Op>
typename Op::Total total_of_run(const T* x, int64_t n) {
  constexpr int64_t kLanes = 64 / static_cast<int64_t>(sizeof(Compute<T>)), kFew = 256;
  const int64_t unit = n < kFew ? kLanes : 4 * kLanes, whole = n - n % unit;
  auto total = n < kFew ? total_of_lanes<T, Op, kLanes>(x, whole) : total_of_lanes<T, Op, 4 * kLanes>(x, whole);
  for (int64_t i = whole; i < n; ++i) total = Op::total(total, static_cast<typename Op::Total>(load(x + i)));
  return total;
}

/// Runs that are looked at together, where they are so short that adding up the lanes of one would take longer than
/// reading it.
inline constexpr int64_t kSide = 16;

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;

/// Where tiles of kSide runs begin: run r of runs that are `step` apart, and row r of what stands side by side.
template <class Bits>
struct SideTiles {
  static constexpr int64_t kWidth = kTile<Bits>;
  static_assert(kSide % kWidth == 0);
  int64_t of_runs[kWidth], of_rows[kWidth];
  explicit SideTiles(int64_t step) {
    for (int64_t r = 0; r < kWidth; ++r) of_runs[r] = r * step, of_rows[r] = r * kSide;
  }
};

/// Calls take(i, row) for i = 0, ..., n - 1, where row[s] is element i of run s of kSide runs of n elements that are
/// `step` apart.
template <class T, class Take>
void side_by_side(const T* x, int64_t step, int64_t n, const Take& take) {
  using Bits = BitsOf<T>;
  constexpr int64_t kWidth = kTile<Bits>;
  Unset<T, kWidth * kSide> unset;
  T* const rows = unset.data();
  if (n < kWidth) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t s = 0; s < kSide; ++s) rows[s] = x[s * step + i];
      take(i, rows);
    }
    return;
  }
  const SideTiles<Bits> starts(step);
  for (int64_t begin = 0; begin < n; begin += kWidth) {
    const int64_t at = std::min(begin, n - kWidth);  // the last tile overlaps the one before
    for (int64_t s = 0; s < kSide; s += kWidth) {
      tiles::transpose_tile(reinterpret_cast<const Bits*>(x + s * step + at), starts.of_runs,
                            reinterpret_cast<Bits*>(rows + s), starts.of_rows);
    }
    for (int64_t i = begin; i < std::min(begin + kWidth, n); ++i) take(i, rows + (i - at) * kSide);
  }
}

/// The inverse: element i of run s is y[s * step + i] = rows[i * kSide + s].
template <class T>
void from_side_by_side(const T* rows, int64_t n, T* y, int64_t step) {
  using Bits = BitsOf<T>;
  constexpr int64_t kWidth = kTile<Bits>;
  if (n < kWidth) {
    for (int64_t s = 0; s < kSide; ++s) {
      for (int64_t i = 0; i < n; ++i) y[s * step + i] = rows[i * kSide + s];
    }
    return;
  }
  const SideTiles<Bits> starts(step);
  for (int64_t begin = 0; begin < n; begin += kWidth) {
    const int64_t at = std::min(begin, n - kWidth);  // the last tile overlaps the one before
    for (int64_t s = 0; s < kSide; s += kWidth) {
      tiles::transpose_tile(reinterpret_cast<const Bits*>(rows + at * kSide + s), starts.of_rows,
                            reinterpret_cast<Bits*>(y + s * step + at), starts.of_runs);
    }
  }
}

/// The totals of kSide runs, each added in its order.
template <class T, class Op>
void totals_of_runs(const T* x, int64_t step, int64_t n, Compute<T>* totals) {
  Compute<T> now[kSide];  // of its own, so that it stays in registers
  std::fill_n(now, kSide, Op::kStart);
  side_by_side(x, step, n, [&now](int64_t, const T* row) {
#pragma GCC unroll 1  // or g++ 12 unrolls it before it looks for vectors, and does maxima one by one
    for (int64_t s = 0; s < kSide; ++s) now[s] = Op::combine(now[s], load(row + s));
  });
  std::copy_n(now, kSide, totals);
}

/// The same for an Op that does not mind the order, nor an element twice, of n >= kSide elements: each run is read by
/// itself, and kSide lanes of each are left to be looked at side by side.
template <class T, class Op>
void totals_of_folded_runs(const T* x, int64_t step, int64_t n, Compute<T>* totals) {
  Compute<T> folded[kSide][kSide];
  for (int64_t s = 0; s < kSide; ++s) {
    const T* const run = x + s * step;
    Compute<T> now[kSide];
    for (int64_t k = 0; k < kSide; ++k) now[k] = load(run + k);
    for (int64_t i = kSide; i < n; i += kSide) {
      const T* const from = run + std::min(i, n - kSide);  // the last lanes overlap those before
#pragma GCC unroll 1
      for (int64_t k = 0; k < kSide; ++k) now[k] = Op::combine(now[k], load(from + k));
    }
    std::copy_n(now, kSide, folded[s]);
  }
  totals_of_runs<Compute<T>, Op>(folded[0], kSide, kSide, totals);
}

/// The total of one run in the same order.
template <class T, class Op>
Compute<T> total_in_order(const T* x, int64_t n) {
  Compute<T> total = Op::kStart;
  for (int64_t i = 0; i < n; ++i) total = Op::combine(total, load(x + i));
  return total;
}

}  // namespace plumb::cpu
