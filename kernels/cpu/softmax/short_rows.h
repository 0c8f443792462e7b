// Softmax and cross entropy along rows that are so short that adding up the lanes of one would take longer than
// computing it: kSide rows at a time, side by side.
#pragma once

#include "kernels/cpu/nontemporal.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduction/runs.h"
#include "kernels/functors/math.h"

namespace plumb::cpu {

/// The longest rows of these functions.
inline constexpr int64_t kLongestShortRow = 128;

/// Calls side(i) for kSide rows of n elements of T from number i on if they are short, and one(i) for each row that is
/// left over, or if they are not. Which these are does not depend on the number of threads. `streams`: whether they
/// write past the caches.
template <class T, class Side, class One>
void by_rows(int64_t rows, int64_t n, bool streams, const Side& side, const One& one) {
  const bool are_short = n <= kLongestShortRow;
  const int64_t grain = kGrainBytes / static_cast<int64_t>(sizeof(T)) / n;
  parallel_for(rows, grain, are_short ? kSide : 1, [&](int64_t begin, int64_t end) {
    for (; are_short && begin + kSide <= end; begin += kSide) side(begin);
    for (; begin < end; ++begin) one(begin);
    if (streams) nontemporal_fence();
  });
}

namespace short_rows {

/// Element i of each of the rows.
template <class C>
using Elements = C[kLongestShortRow][kSide];

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

/// The same less each row's largest element.
template <class T>
void read_below_largest(const T* x, int64_t n, Elements<Compute<T>>& to, Compute<T> (&largest)[kSide]) {
  read(x, n, to);
  std::copy_n(to[0], kSide, largest);
  for (int64_t i = 1; i < n; ++i) each([&](int64_t s) { largest[s] = to[i][s] > largest[s] ? to[i][s] : largest[s]; });
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
  Unset<T, kLongestShortRow * kSide> rows;
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
