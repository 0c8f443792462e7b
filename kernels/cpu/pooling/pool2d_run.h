// A run: a few vectors of neighbouring elements of the result of pooling.
#pragma once

#include <algorithm>
#include <array>

#include "kernels/cpu/simd.h"

namespace plumb::cpu::pool {

using simd::IntVec;
using simd::kLanes;
using simd::Vec;

/// A vector is of neighbours in the innermost dimension of (outer, H, W, inner): they share their windows.
struct Inner {};
/// A vector is of columns of one row: neighbours have windows that are a stride apart (0: known at run time).
template <int64_t stride>
struct Columns {
  static constexpr int64_t kStride = stride;
};

namespace shuffles {
template <class Index>
constexpr std::array<int32_t, kLanes> lanes_of(Index index) {
  std::array<int32_t, kLanes> lanes{};
  for (int32_t j = 0; j < kLanes; ++j) lanes[static_cast<size_t>(j)] = index(j);
  return lanes;
}
inline constexpr int32_t kHalf = kLanes / 2;
/// Every second element of two vectors of which the second begins with the last element of the first.
inline constexpr auto kEven = lanes_of([](int32_t j) { return j < kHalf ? 2 * j : 2 * j + 1; });
/// The elements of two vectors in turn: the first half of them, and the second.
inline constexpr auto kLow = lanes_of([](int32_t j) { return j / 2 + (j % 2 ? 2 * kHalf : 0); });
inline constexpr auto kHigh = lanes_of([](int32_t j) { return kHalf + j / 2 + (j % 2 ? 2 * kHalf : 0); });
inline constexpr auto kFirstHalf = lanes_of([](int32_t j) { return j < kHalf ? -1 : 0; });
}  // namespace shuffles

/// n elements in `vectors` vectors, which they fill if `whole`.
template <class Along, int vectors, bool whole>
struct Run {
  static constexpr int kVectors = vectors;
  int64_t n;
  int64_t stride = 1;

  /// body(v) for the vectors of the run.
  template <class Body>
  [[gnu::always_inline]] static void each(const Body& body) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) body(v);
  }
  int64_t left(int v) const { return whole ? kLanes : std::clamp<int64_t>(n - v * kLanes, 0, kLanes); }

  /// Vector v of the n elements at p.
  template <class T>
  [[gnu::always_inline]] auto load(const T* p, int v) const {
    return whole ? simd::load(p + v * kLanes) : simd::load(p + v * kLanes, left(v));
  }
  /// Vector v of the elements that the run's windows have at one place; p is that of the first.
  template <class T>
  [[gnu::always_inline]] Vec in_windows(const T* p, int v) const {
    if constexpr (std::is_same_v<Along, Inner>) {
      return load(p, v);
    } else if constexpr (Along::kStride == 1) {
      return load(p, v);
    } else if constexpr (Along::kStride == 2) {
      const int64_t last = 2 * left(v) - 1;
      const Vec a = whole ? simd::load(p) : simd::load(p, std::min(last, kLanes));
      const Vec b =
          whole ? simd::load(p + kLanes - 1) : simd::load(p + kLanes - 1, std::max<int64_t>(0, last - kLanes + 1));
      return __builtin_shuffle(a, b, std::bit_cast<IntVec>(shuffles::kEven));
    } else {
      Vec e{};
      for (int64_t j = 0; j < left(v); ++j) e[j] = static_cast<float>(p[j * stride]);
      return e;
    }
  }
  /// What there is of each window: one number for all lanes, or one for each column.
  [[gnu::always_inline]] Vec of_windows(const float* p, int v) const {
    if constexpr (std::is_same_v<Along, Inner>) {
      return *p - Vec{};
    } else {
      return load(p, v);
    }
  }
  /// Fetches the run at p + from, which need not exist, into the second cache.
  template <class T>
  [[gnu::always_inline]] static void fetch(const T* p, int64_t from) {
    constexpr int64_t kLine = 64, kSize = static_cast<int64_t>(sizeof(T)), kBytes = kVectors * kLanes * kSize;
    for (int64_t i = 0; i < kBytes; i += kLine) simd::fetch<2>(p, from * kSize + i);
  }
  template <class T, class V>
  [[gnu::always_inline]] void store(T* p, int v, V value) const {
    whole ? simd::store(p + v * kLanes, value) : simd::store(p + v * kLanes, value, left(v));
  }
};

/// Stores the n elements of `even` and of `odd` in turn.
template <class T, class Along, bool whole>
[[gnu::always_inline]] inline void store_in_turn(T* p, Vec even, Vec odd, Run<Along, 1, whole> run) {
  const Run<Along, 2, whole> both{2 * run.n};
  both.store(p, 0, __builtin_shuffle(even, odd, std::bit_cast<IntVec>(shuffles::kLow)));
  both.store(p, 1, __builtin_shuffle(even, odd, std::bit_cast<IntVec>(shuffles::kHigh)));
}

/// Windows of 2x2 that tile planes of `width` windows a row, where whole rows of windows fill a vector: the windows of
/// a block of kLanes have 4 * kLanes neighbouring elements. `pick` finds element k of every window in the first, or the
/// second, two vectors of these; `spread` is the inverse, for each of the four vectors, from the elements of two
/// columns.
struct Squares {
  std::array<std::array<int32_t, kLanes>, 4> pick{}, spread{}, below{};
  Squares() = default;
  explicit Squares(int64_t width) {
    for (int64_t e = 0; e < 4 * kLanes; ++e) {
      const int64_t row = e / (2 * width), column = e % (2 * width);
      const int64_t window = row / 2 * width + column / 2, k = row % 2 * 2 + column % 2;
      const auto vector = static_cast<size_t>(e / kLanes), lane = static_cast<size_t>(e % kLanes);
      pick[static_cast<size_t>(k)][static_cast<size_t>(window)] = static_cast<int32_t>(e % (2 * kLanes));
      spread[vector][lane] = static_cast<int32_t>(column % 2 * kLanes + window);
      below[vector][lane] = row % 2 ? -1 : 0;
    }
  }
};

/// A block of n <= kLanes windows as a run, for element k of each.
template <bool whole>
struct SquareRun : Run<Columns<1>, 1, whole> {
  const Squares& squares;
  size_t k = 0;
  SquareRun(int64_t windows, const Squares& s) : Run<Columns<1>, 1, whole>{windows}, squares(s) {}

  int64_t left_of_elements(int64_t vector) const {
    return whole ? kLanes : std::clamp<int64_t>(4 * this->n - vector * kLanes, 0, kLanes);
  }
  /// p is the first element of the block.
  template <class T>
  [[gnu::always_inline]] Vec in_windows(const T* p, int) const {
    const auto pick = std::bit_cast<IntVec>(squares.pick[k]);
    const auto vector = [&](int64_t i) { return load_part(p + i * kLanes, left_of_elements(i)); };
    const Vec first = __builtin_shuffle(vector(0), vector(1), pick),
              second = __builtin_shuffle(vector(2), vector(3), pick);
    return std::bit_cast<IntVec>(shuffles::kFirstHalf) ? first : second;
  }
  /// All windows have the same.
  [[gnu::always_inline]] Vec of_windows(const float* p, int) const { return *p - Vec{}; }
  /// Stores elements 0 to 3 of the windows to the block at p.
  template <class T>
  [[gnu::always_inline]] void store_block(T* p, const Vec* elements) const {
    for (int64_t i = 0; i < 4; ++i) {
      const auto at = static_cast<size_t>(i);
      const auto spread = std::bit_cast<IntVec>(squares.spread[at]), below = std::bit_cast<IntVec>(squares.below[at]);
      const Vec upper = __builtin_shuffle(elements[0], elements[1], spread);
      const Vec lower = __builtin_shuffle(elements[2], elements[3], spread);
      const Vec v = below ? lower : upper;
      whole ? simd::store(p + i * kLanes, v) : simd::store(p + i * kLanes, v, left_of_elements(i));
    }
  }

 private:
  template <class T>
  [[gnu::always_inline]] static Vec load_part(const T* p, int64_t n) {
    return whole ? simd::load(p) : simd::load(p, n);
  }
};

}  // namespace plumb::cpu::pool
