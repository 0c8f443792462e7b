// Rows of a matrix in vectors: sums over one, and a result that is written along it.
#pragma once

#include <array>

#include "kernels/cpu/element.h"
#include "kernels/cpu/nontemporal.h"
#include "kernels/cpu/reduction/simd_reduce.h"

namespace plumb::cpu {

/// Some elements side by side, in the type for arithmetic. Loads and stores are of the first n; loads set the others to
/// zero.
template <class T>
struct Lanes {
  using V = simd::Vec;
  static constexpr int64_t kCount = simd::kLanes;
  template <class E>
  static V load(const E* p, int64_t n) {
    return n >= kCount ? simd::load(p) : simd::load(p, n);
  }
  template <class E>
  static void store(E* p, V v, int64_t n = kCount) {
    n >= kCount ? simd::store(p, v) : simd::store(p, v, n);
  }
  /// The first n, and `others`.
  static V first(V v, int64_t n, V others = V{}) {
    simd::IntVec lane{};
    for (int32_t i = 0; i < static_cast<int32_t>(kCount); ++i) lane[i] = i;
    return lane < static_cast<int32_t>(n) ? v : others;
  }
  /// f of each.
  template <class F>
  [[gnu::always_inline]] static V map(V v, const F& f) {
    alignas(V) float from[kCount], to[kCount];
    plumb::detail::store_bytes(from, v);
#pragma GCC unroll 1  // or g++ 12 unrolls it before it looks for vectors
#pragma GCC ivdep
    for (int64_t i = 0; i < kCount; ++i) to[i] = f(from[i]);
    return plumb::detail::load_bytes<V>(to);
  }
  static double sum(V v) {
    return static_cast<double>(folded(v, [](auto a, auto b) { return a + b; }));
  }
  static float largest(V v) {
    return folded(v, [](auto a, auto b) { return a > b ? a : b; });
  }

 private:
  using V16 = float __attribute__((vector_size(64)));
  using V8 = float __attribute__((vector_size(32)));
  using V4 = float __attribute__((vector_size(16)));
  template <class Rule>
  static float folded(V16 v, const Rule& rule) {
    const auto halves = std::bit_cast<std::array<V8, 2>>(v);
    return folded(rule(halves[0], halves[1]), rule);
  }
  template <class Rule>
  static float folded(V8 v, const Rule& rule) {
    const auto halves = std::bit_cast<std::array<V4, 2>>(v);
    return folded(rule(halves[0], halves[1]), rule);
  }
  template <class Rule>
  static float folded(V4 v, const Rule& rule) {
    return rule(rule(v[0], v[2]), rule(v[1], v[3]));
  }
};
template <>
struct Lanes<double> {
  using V = double __attribute__((vector_size(sizeof(simd::Vec))));
  static constexpr int64_t kCount = simd::kLanes / 2;
  static V load(const double* p, int64_t n) {
    if (n >= kCount) return plumb::detail::load_bytes<V>(p);
    V v{};
    for (int64_t i = 0; i < n; ++i) v[i] = p[i];
    return v;
  }
  static void store(double* p, V v, int64_t n = kCount) {
    if (n >= kCount) return plumb::detail::store_bytes(p, v);
    for (int64_t i = 0; i < n; ++i) p[i] = v[i];
  }
  static V first(V v, int64_t n, V others = V{}) {
    for (int64_t i = n; i < kCount; ++i) v[i] = others[i];
    return v;
  }
  template <class F>
  static V map(V v, const F& f) {
    for (int64_t i = 0; i < kCount; ++i) v[i] = f(v[i]);
    return v;
  }
  static double sum(V v) {
    double total = v[0];
    for (int64_t i = 1; i < kCount; ++i) total += v[i];
    return total;
  }
  static double largest(V v) {
    double most = v[0];
    for (int64_t i = 1; i < kCount; ++i) most = v[i] > most ? v[i] : most;
    return most;
  }
};

/// Lanes that add up to N sums over the elements [begin, end) of a row: of what term(i, count) returns for the `count`
/// elements from i on, which are whole vectors but at the end.
template <class T, size_t N, class Term>
[[gnu::always_inline]] inline auto sum_lanes(int64_t begin, int64_t end, const Term& term) {
  using L = Lanes<T>;
  using V = typename L::V;
  constexpr int64_t kChains = N == 1 ? 4 : 2;  // sums that do not wait for each other
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
  std::array<V, N> all;
  for (size_t s = 0; s < N; ++s) {
    all[s] = sums[0][s];
    for (int64_t chain = 1; chain < kChains; ++chain) all[s] += sums[chain][s];
  }
  return all;
}

/// N sums over a row of n elements.
template <class T, size_t N, class Term>
std::array<double, N> row_sums(int64_t n, const Term& term) {
  std::array<double, N> total{};
  for (int64_t begin = 0; begin < n; begin += kShortSum) {
    const auto lanes = sum_lanes<T, N>(begin, std::min(n, begin + kShortSum), term);
    for (size_t s = 0; s < N; ++s) total[s] += Lanes<T>::sum(lanes[s]);
  }
  return total;
}

/// Lanes the largest of which is the largest element of a row; NaN is ignored.
template <class T>
auto largest_lanes(const T* x, int64_t n) {
  using L = Lanes<T>;
  using V = typename L::V;
  const V none = V{} - std::numeric_limits<Compute<T>>::infinity();
  const auto larger = [](V a, V v) { return v > a ? v : a; };
  V most[2] = {none, none};  // that do not wait for each other
  int64_t i = 0;
  for (; i + 2 * L::kCount <= n; i += 2 * L::kCount) {
    most[0] = larger(most[0], L::load(x + i, L::kCount));
    most[1] = larger(most[1], L::load(x + i + L::kCount, L::kCount));
  }
  for (; i < n; i += L::kCount) most[0] = larger(most[0], L::first(L::load(x + i, n - i), n - i, none));
  return larger(most[0], most[1]);
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
