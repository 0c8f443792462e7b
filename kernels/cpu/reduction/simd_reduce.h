// Sums and maxima in independent lanes, since compilers may not reorder floating-point arithmetic by themselves.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace plumb::cpu {

inline constexpr int64_t kReduceWidth = 32;
/// The most numbers that are added in the lanes before the lanes are added up in double.
inline constexpr int64_t kShortSum = 4096;

/// The largest of term(0), ..., term(n - 1) by larger(a, v); -infinity if n is 0.
template <class C, class Term, class Rule>
C simd_max(int64_t n, const Term& term, const Rule& larger) {
  constexpr int64_t kWidth = kReduceWidth;
  C lane[kWidth];
  std::fill_n(lane, kWidth, -std::numeric_limits<C>::infinity());
  const auto step = [&](int64_t i, int64_t width) {
    for (int64_t k = 0; k < width; ++k) lane[k] = larger(lane[k], term(i + k));
  };
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) step(i, kWidth);
  step(i, n - i);
  for (int64_t width = kWidth / 2; width > 0; width /= 2) {
    for (int64_t k = 0; k < width; ++k) lane[k] = larger(lane[k], lane[k + width]);
  }
  return lane[0];
}

/// N sums that are computed together.
template <class C, size_t N>
struct SimdSums {
  static constexpr int64_t kWidth = kReduceWidth;
  C lane[N][kWidth] = {};

  /// Adds the arrays term(0), ..., term(n - 1), in any order: so a term may write only memory that no other term reads.
  template <class Term>
  void add(int64_t n, const Term& term) {
    const auto step = [&](int64_t i, int64_t width) {
#pragma GCC ivdep
      for (int64_t k = 0; k < width; ++k) {
        const std::array<C, N> v = term(i + k);
        for (size_t s = 0; s < N; ++s) lane[s][k] += v[s];
      }
    };
    int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) step(i, kWidth);
    step(i, n - i);
  }
  /// Adds the sums to `total` and starts again from zero.
  void move_to(std::array<double, N>& total) {
    for (size_t s = 0; s < N; ++s) {
      for (int64_t width = kWidth / 2; width > 0; width /= 2) {
        for (int64_t k = 0; k < width; ++k) lane[s][k] += lane[s][k + width];
      }
      total[s] += static_cast<double>(lane[s][0]);
      std::fill_n(lane[s], kWidth, C(0));
    }
  }
};

/// The sum of term(0), ..., term(n - 1).
template <class C, class Term>
double simd_sum(int64_t n, const Term& term) {
  std::array<double, 1> total{};
  for (int64_t begin = 0; begin < n; begin += kShortSum) {
    SimdSums<C, 1> lanes;
    lanes.add(std::min(kShortSum, n - begin), [&](int64_t i) { return std::array<C, 1>{term(begin + i)}; });
    lanes.move_to(total);
  }
  return total[0];
}

/// Columns that are processed together.
inline constexpr int64_t kColumns = 128;

/// total[j] = the sum over k < n of term(k, j), for j < width <= kColumns. term may write memory that is not read
/// before the end.
template <class C, class Term>
void column_sums(int64_t n, int64_t width, C* total, const Term& term) {
  double wide[kColumns] = {};
  for (int64_t begin = 0; begin < n; begin += kShortSum / kReduceWidth) {
    C narrow[kColumns] = {};
    for (int64_t k = begin; k < std::min(n, begin + kShortSum / kReduceWidth); ++k) {
#pragma GCC ivdep
      for (int64_t j = 0; j < width; ++j) narrow[j] += term(k, j);
    }
    for (int64_t j = 0; j < width; ++j) wide[j] += static_cast<double>(narrow[j]);
  }
  for (int64_t j = 0; j < width; ++j) total[j] = static_cast<C>(wide[j]);
}

}  // namespace plumb::cpu
