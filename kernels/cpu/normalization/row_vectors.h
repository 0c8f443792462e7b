// Rows of a matrix in vectors: sums over one, and a result that is written along it.
#pragma once

#include <array>

#include "kernels/cpu/element.h"
#include "kernels/cpu/nontemporal.h"
#include "kernels/cpu/reduction/simd_reduce.h"

namespace plumb::cpu {

/// Some elements side by side: of f64, which is for checking, one.
template <class T>
struct Lanes {
  using V = simd::Vec;
  static constexpr int64_t kCount = simd::kLanes;
  template <class E>
  static V load(const E* p, int64_t n) {
    return n >= kCount ? simd::load(p) : simd::load(p, n);
  }
  template <class E>
  static void store(E* p, V v, int64_t n) {
    n >= kCount ? simd::store(p, v) : simd::store(p, v, n);
  }
  /// The first n, and zeros.
  static V first(V v, int64_t n) {
    simd::IntVec lane{};
    for (int32_t i = 0; i < static_cast<int32_t>(kCount); ++i) lane[i] = i;
    return lane < static_cast<int32_t>(n) ? v : V{};
  }
  static double sum(V v) { return static_cast<double>(folded(v)); }

 private:
  using V16 = float __attribute__((vector_size(64)));
  using V8 = float __attribute__((vector_size(32)));
  using V4 = float __attribute__((vector_size(16)));
  static float folded(V16 v) {
    const auto halves = std::bit_cast<std::array<V8, 2>>(v);
    return folded(halves[0] + halves[1]);
  }
  static float folded(V8 v) {
    const auto halves = std::bit_cast<std::array<V4, 2>>(v);
    return folded(halves[0] + halves[1]);
  }
  static float folded(V4 v) { return (v[0] + v[2]) + (v[1] + v[3]); }
};
template <>
struct Lanes<double> {
  using V = double;
  static constexpr int64_t kCount = 1;
  static V load(const double* p, int64_t) { return *p; }
  static void store(double* p, V v, int64_t) { *p = v; }
  static V first(V v, int64_t) { return v; }
  static double sum(V v) { return v; }
};

/// N sums over a row of n elements: of what term(i, count) returns for the `count` elements from i on, which are whole
/// vectors but at the end.
template <class T, size_t N, class Term>
std::array<double, N> row_sums(int64_t n, const Term& term) {
  using L = Lanes<T>;
  using V = typename L::V;
  constexpr int64_t kChains = N == 1 ? 4 : 2;  // sums that do not wait for each other
  std::array<double, N> total{};
  for (int64_t begin = 0; begin < n; begin += kShortSum) {
    const int64_t end = std::min(n, begin + kShortSum);
    V sums[kChains][N] = {};
    const auto add = [&](int64_t chain, const std::array<V, N>& v) {
      for (size_t s = 0; s < N; ++s) sums[chain][s] += v[s];
    };
    int64_t i = begin;
    for (; i + kChains * L::kCount <= end; i += kChains * L::kCount) {
      for (int64_t chain = 0; chain < kChains; ++chain) add(chain, term(i + chain * L::kCount, L::kCount));
    }
    for (; i + L::kCount <= end; i += L::kCount) add(0, term(i, L::kCount));
    if (i < end) {
      std::array<V, N> v = term(i, end - i);
      for (V& of_one : v) of_one = L::first(of_one, end - i);
      add(1, v);
    }
    for (size_t s = 0; s < N; ++s) {
      V all = sums[0][s];
      for (int64_t chain = 1; chain < kChains; ++chain) all += sums[chain][s];
      total[s] += L::sum(all);
    }
  }
  return total;
}

/// body(i, count) for the elements from i to i + count of a row, as row_sums has them.
template <class T, class Body>
void for_row(int64_t n, const Body& body) {
  constexpr int64_t kCount = Lanes<T>::kCount;
  int64_t i = 0;
  for (; i + kCount <= n; i += kCount) body(i, kCount);
  if (i < n) body(i, n - i);
}

/// How the rows of a result are written: past the caches, if it is large.
template <class T>
class RowWriter {
 public:
  RowWriter(int64_t rows, int64_t columns)
      : columns_(columns), streams_(columns >= kStaged && rows * columns * int64_t{sizeof(T)} >= nontemporal_bytes) {}
  /// The elements of y from i on are value(i, count).
  template <class Value>
  void write(T* y, const Value& value) const {
    using L = Lanes<T>;
    if (!streams_) {
      for_row<T>(columns_, [&](int64_t i, int64_t count) { L::store(y + i, value(i, count), count); });
      return;
    }
    Unset<T, kStaged> unset;
    T* const stage = unset.data();
    for (int64_t begin = 0; begin < columns_; begin += kStaged) {
      const int64_t n = std::min(kStaged, columns_ - begin);
      for_row<T>(n, [&](int64_t i, int64_t count) { L::store(stage + i, value(begin + i, count), count); });
      copy_nontemporal(reinterpret_cast<uint8_t*>(y + begin), reinterpret_cast<const uint8_t*>(stage),
                       n * int64_t{sizeof(T)});
    }
  }
  /// After the last row of a thread.
  void finish() const {
    if (streams_) nontemporal_fence();
  }

 private:
  static constexpr int64_t kStaged = kPieceBytes / sizeof(T);
  int64_t columns_;
  bool streams_;
};

}  // namespace plumb::cpu
