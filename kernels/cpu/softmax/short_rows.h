// Softmax and cross entropy along rows of few vectors, kSide rows at a time: elements of all stand side by side.
#pragma once

#include "kernels/cpu/reduction/runs.h"
#include "kernels/functors/math.h"

namespace plumb::cpu {

/// The longest rows that are faster by these functions than each by itself in vectors (rows.h): longer ones where
/// elements have 16 bits and the processor no masks of those, so that a part of a vector is loaded by pieces.
template <class T>
inline constexpr int64_t kLongestShortRow = sizeof(T) == 2 && simd::kLanes < 16 ? 128 : 31;
template <class T>
inline constexpr int64_t kLongestShortGradient = sizeof(T) == 2 && simd::kLanes < 16 ? 128 : 7;

namespace short_rows {

inline constexpr int64_t kMost = std::max(kLongestShortRow<Bfloat16>, kLongestShortRow<float>);
static_assert(simd::kLanes <= kMost && kLongestShortGradient<Bfloat16> <= kMost);

/// Element i of each of the rows.
template <class C>
using Elements = C[kMost][kSide];

/// take(s) for each of the rows.
template <class Take>
[[gnu::always_inline]] inline void each(const Take& take) {
#pragma GCC unroll 1  // or g++ 12 unrolls it before it looks for vectors
#pragma GCC ivdep
  for (int64_t s = 0; s < kSide; ++s) take(s);
}

template <class T>
void read(const T* x, int64_t n, Elements<Compute<T>>& to) {
  side_by_side(x, n, n, [&](int64_t i, const T* row) { each([&](int64_t s) { to[i][s] = load(row + s); }); });
}

/// The largest element of each row; NaN is ignored, but where it is the first.
template <class C>
void find_largest(const Elements<C>& of, int64_t n, C (&largest)[kSide]) {
  std::copy_n(of[0], kSide, largest);
  for (int64_t i = 1; i < n; ++i) each([&](int64_t s) { largest[s] = of[i][s] > largest[s] ? of[i][s] : largest[s]; });
}

/// The rows less their largest elements.
template <class T>
void read_below_largest(const T* x, int64_t n, Elements<Compute<T>>& to, Compute<T> (&largest)[kSide]) {
  read(x, n, to);
  find_largest(to, n, largest);
  for (int64_t i = 0; i < n; ++i) each([&](int64_t s) { to[i][s] -= largest[s]; });
}

/// Sums of n terms, in four parts.
template <class C, class Term>
void sum(int64_t n, C (&total)[kSide], const Term& term) {
  C parts[4][kSide] = {};
  for (int64_t i = 0; i < n; ++i) {
    C* const part = parts[i % 4];
    each([&](int64_t s) { part[s] += term(i, s); });
  }
  each([&](int64_t s) { total[s] = (parts[0][s] + parts[1][s]) + (parts[2][s] + parts[3][s]); });
}

template <class T, class Value>
void write(T* y, int64_t n, const Value& value) {
  Unset<T, kMost * kSide> rows;
  for (int64_t i = 0; i < n; ++i) each([&](int64_t s) { store(rows.data() + i * kSide + s, value(i, s)); });
  from_side_by_side(rows.data(), n, y, n);
}

}  // namespace short_rows

/// kSide rows of n elements, one behind the other.
template <class T, bool kLog>
void softmax_short_rows(int64_t n, const T* x, T* y) {
  using C = Compute<T>;
  short_rows::Elements<C> value;
  C largest[kSide], total[kSide];
  short_rows::read_below_largest(x, n, value, largest);
  if constexpr (kLog) {
    short_rows::sum(n, total, [&](int64_t i, int64_t s) { return functors::math::exp_below(value[i][s]); });
    short_rows::each([&](int64_t s) { total[s] = functors::math::log(total[s]); });
    short_rows::write(y, n, [&](int64_t i, int64_t s) { return value[i][s] - total[s]; });
  } else {
    short_rows::sum(n, total,
                    [&](int64_t i, int64_t s) { return value[i][s] = functors::math::exp_below(value[i][s]); });
    short_rows::each([&](int64_t s) { total[s] = 1 / total[s]; });
    short_rows::write(y, n, [&](int64_t i, int64_t s) { return value[i][s] * total[s]; });
  }
}

/// Its gradient.
template <class T, bool kLog>
void softmax_backward_short_rows(int64_t n, const T* dy, const T* y, T* dx) {
  using C = Compute<T>;
  short_rows::Elements<C> d, v;
  C total[kSide];
  short_rows::read(dy, n, d);
  short_rows::read(y, n, v);
  short_rows::sum(n, total, [&](int64_t i, int64_t s) { return kLog ? d[i][s] : d[i][s] * v[i][s]; });
  short_rows::write(dx, n, [&](int64_t i, int64_t s) {
    return kLog ? d[i][s] - functors::math::exp_below(v[i][s]) * total[s] : v[i][s] * (d[i][s] - total[s]);
  });
}

/// The losses of kSide rows, and their statistics: the largest element, and the logarithm of the sum.
template <class T, class C = Compute<T>>
void cross_entropy_short_rows(const T* x, int64_t n, const int64_t* labels, C* statistics, double* losses) {
  short_rows::Elements<C> value;
  C largest[kSide], total[kSide];
  short_rows::read_below_largest(x, n, value, largest);
  short_rows::sum(n, total, [&](int64_t i, int64_t s) { return functors::math::exp_below(value[i][s]); });
  for (int64_t s = 0; s < kSide; ++s) {
    const double log_sum = std::log(static_cast<double>(total[s]));
    statistics[2 * s] = largest[s];
    statistics[2 * s + 1] = static_cast<C>(log_sum);
    losses[s] = log_sum - static_cast<double>(value[labels[s]][s]);
  }
}

/// Their gradients but for the label's 1, for the gradient d[s] of each loss.
template <class T, class C = Compute<T>>
void cross_entropy_backward_short_rows(const T* x, int64_t n, const C* statistics, const C* d, T* dx) {
  short_rows::Elements<C> value;
  short_rows::read(x, n, value);
  C largest[kSide], log_sum[kSide];
  short_rows::each([&](int64_t s) { largest[s] = statistics[2 * s], log_sum[s] = statistics[2 * s + 1]; });
  short_rows::write(dx, n, [&](int64_t i, int64_t s) {
    return functors::math::exp_below((value[i][s] - largest[s]) - log_sum[s]) * d[s];
  });
}

}  // namespace plumb::cpu
