// The small matrices of Winograd's algorithm as straight-line code, and how to apply one from both sides of a square.
//
// With tiles of M outputs and 3 taps (alpha = M + 2 points): y = A^T [(G g) * (B^T d)] A in two dimensions. InputRule
// is B^T, WeightRule is G and OutputRule is A^T. Backward weights exchanges the parts of taps and outputs: M taps are
// elements of dy (GradientRule), three outputs are elements of dw (KernelRule), and B^T is the same. The adjoint of the
// whole, from y's gradient to x's, is B [(G g G^T) * (A dy A^T)] B^T (OutputAdjoint and InputAdjoint).
#pragma once

#include "kernels/cpu/simd.h"

namespace plumb::cpu::winograd {

using simd::Vec;

/// B^T: a window of M + 2 elements of x to the points.
template <int M>
struct InputRule;
/// G: three taps of w to the points.
template <int M>
struct WeightRule;
/// A^T: the points to M elements of y.
template <int M>
struct OutputRule;
/// A: M elements of dy to the points.
template <int M>
struct OutputAdjoint;
/// B: the points to M + 2 elements of dx, which have to be added up where windows overlap.
template <int M>
struct InputAdjoint;
/// G with M taps: M elements of dy to the points.
template <int M>
struct GradientRule;
/// A^T with three outputs: the points to three taps of dw.
template <int M>
struct KernelRule;

// M = 2: the points 0, 1, -1 and infinity.

template <>
struct InputRule<2> {
  static constexpr int kIn = 4, kOut = 4;
  [[gnu::always_inline]] static void apply(const Vec (&d)[4], Vec (&o)[4]) {
    o[0] = d[0] - d[2];
    o[1] = d[1] + d[2];
    o[2] = d[2] - d[1];
    o[3] = d[3] - d[1];
  }
};

template <>
struct WeightRule<2> {
  static constexpr int kIn = 3, kOut = 4;
  [[gnu::always_inline]] static void apply(const Vec (&g)[3], Vec (&o)[4]) {
    const Vec even = 0.5f * (g[0] + g[2]), odd = 0.5f * g[1];
    o[0] = g[0];
    o[1] = even + odd;
    o[2] = even - odd;
    o[3] = g[2];
  }
};

template <>
struct OutputRule<2> {
  static constexpr int kIn = 4, kOut = 2;
  [[gnu::always_inline]] static void apply(const Vec (&m)[4], Vec (&o)[2]) {
    o[0] = m[0] + m[1] + m[2];
    o[1] = m[1] - m[2] + m[3];
  }
};

template <>
struct OutputAdjoint<2> {
  static constexpr int kIn = 2, kOut = 4;
  [[gnu::always_inline]] static void apply(const Vec (&y)[2], Vec (&o)[4]) {
    o[0] = y[0];
    o[1] = y[0] + y[1];
    o[2] = y[0] - y[1];
    o[3] = y[1];
  }
};

template <>
struct InputAdjoint<2> {
  static constexpr int kIn = 4, kOut = 4;
  [[gnu::always_inline]] static void apply(const Vec (&m)[4], Vec (&d)[4]) {
    const Vec odd = m[1] - m[2];
    d[0] = m[0];
    d[1] = odd - m[3];
    d[2] = m[1] + m[2] - m[0];
    d[3] = m[3];
  }
};

template <>
struct GradientRule<2> {
  static constexpr int kIn = 2, kOut = 4;
  [[gnu::always_inline]] static void apply(const Vec (&g)[2], Vec (&o)[4]) {
    o[0] = g[0];
    o[1] = 0.5f * (g[0] + g[1]);
    o[2] = 0.5f * (g[0] - g[1]);
    o[3] = g[1];
  }
};

template <>
struct KernelRule<2> {
  static constexpr int kIn = 4, kOut = 3;
  [[gnu::always_inline]] static void apply(const Vec (&m)[4], Vec (&o)[3]) {
    const Vec even = m[1] + m[2];
    o[0] = m[0] + even;
    o[1] = m[1] - m[2];
    o[2] = even + m[3];
  }
};

// M = 4: the points 0, p, -p, q, -q and infinity.
//
// p = sqrt(1/2) and q = sqrt(2) cost as many instructions as the usual 1 and 2, and halve the rounding error: the
// entries of the matrices stay nearer to 1.

inline constexpr float kP = 0.707106781186547524f, kP2 = 0.5f, kQ = 1.41421356237309505f, kQ2 = 2;
// The rows of G are divided by the products of differences of their point to the others.
inline constexpr float kGP = 1 / (2 * kP2 * (kP2 - kQ2)), kGQ = 1 / (2 * kQ2 * (kQ2 - kP2));
static_assert(kP2 * kQ2 == 1, "left out of the rows of 0 and infinity");

// The values of a polynomial at P, -P, Q and -Q from its even and its odd part at P and Q.
[[gnu::always_inline]] inline void set_points(Vec (&o)[6], const Vec& even_p, const Vec& odd_p, const Vec& even_q,
                                              const Vec& odd_q) {
  o[1] = even_p + odd_p;
  o[2] = even_p - odd_p;
  o[3] = even_q + odd_q;
  o[4] = even_q - odd_q;
}

template <>
struct InputRule<4> {
  static constexpr int kIn = 6, kOut = 6;
  [[gnu::always_inline]] static void apply(const Vec (&d)[6], Vec (&o)[6]) {
    const Vec even_p = d[4] - kQ2 * d[2], odd_p = kP * (d[3] - kQ2 * d[1]);
    const Vec even_q = d[4] - kP2 * d[2], odd_q = kQ * (d[3] - kP2 * d[1]);
    o[0] = d[0] - (kP2 + kQ2) * d[2] + d[4];
    set_points(o, even_p, odd_p, even_q, odd_q);
    o[5] = d[1] - (kP2 + kQ2) * d[3] + d[5];
  }
};

template <>
struct WeightRule<4> {
  static constexpr int kIn = 3, kOut = 6;
  [[gnu::always_inline]] static void apply(const Vec (&g)[3], Vec (&o)[6]) {
    const Vec even_p = kGP * (g[0] + kP2 * g[2]), odd_p = kGP * kP * g[1];
    const Vec even_q = kGQ * (g[0] + kQ2 * g[2]), odd_q = kGQ * kQ * g[1];
    o[0] = g[0];
    set_points(o, even_p, odd_p, even_q, odd_q);
    o[5] = g[2];
  }
};

template <>
struct OutputRule<4> {
  static constexpr int kIn = 6, kOut = 4;
  [[gnu::always_inline]] static void apply(const Vec (&m)[6], Vec (&o)[4]) {
    const Vec even_p = m[1] + m[2], odd_p = kP * (m[1] - m[2]);
    const Vec even_q = m[3] + m[4], odd_q = kQ * (m[3] - m[4]);
    o[0] = m[0] + even_p + even_q;
    o[1] = odd_p + odd_q;
    o[2] = kP2 * even_p + kQ2 * even_q;
    o[3] = kP2 * odd_p + kQ2 * odd_q + m[5];
  }
};

template <>
struct OutputAdjoint<4> {
  static constexpr int kIn = 4, kOut = 6;
  [[gnu::always_inline]] static void apply(const Vec (&y)[4], Vec (&o)[6]) {
    const Vec even_p = y[0] + kP2 * y[2], odd_p = kP * (y[1] + kP2 * y[3]);
    const Vec even_q = y[0] + kQ2 * y[2], odd_q = kQ * (y[1] + kQ2 * y[3]);
    o[0] = y[0];
    set_points(o, even_p, odd_p, even_q, odd_q);
    o[5] = y[3];
  }
};

template <>
struct InputAdjoint<4> {
  static constexpr int kIn = 6, kOut = 6;
  [[gnu::always_inline]] static void apply(const Vec (&m)[6], Vec (&d)[6]) {
    const Vec even_p = m[1] + m[2], odd_p = kP * (m[1] - m[2]);
    const Vec even_q = m[3] + m[4], odd_q = kQ * (m[3] - m[4]);
    d[0] = m[0];
    d[1] = m[5] - kQ2 * odd_p - kP2 * odd_q;
    d[2] = -(kP2 + kQ2) * m[0] - kQ2 * even_p - kP2 * even_q;
    d[3] = odd_p + odd_q - (kP2 + kQ2) * m[5];
    d[4] = m[0] + even_p + even_q;
    d[5] = m[5];
  }
};

template <>
struct GradientRule<4> {
  static constexpr int kIn = 4, kOut = 6;
  [[gnu::always_inline]] static void apply(const Vec (&g)[4], Vec (&o)[6]) {
    const Vec even_p = kGP * (g[0] + kP2 * g[2]), odd_p = kGP * kP * (g[1] + kP2 * g[3]);
    const Vec even_q = kGQ * (g[0] + kQ2 * g[2]), odd_q = kGQ * kQ * (g[1] + kQ2 * g[3]);
    o[0] = g[0];
    set_points(o, even_p, odd_p, even_q, odd_q);
    o[5] = g[3];
  }
};

template <>
struct KernelRule<4> {
  static constexpr int kIn = 6, kOut = 3;
  [[gnu::always_inline]] static void apply(const Vec (&m)[6], Vec (&o)[3]) {
    const Vec even_p = m[1] + m[2], even_q = m[3] + m[4];
    o[0] = m[0] + even_p + even_q;
    o[1] = kP * (m[1] - m[2]) + kQ * (m[3] - m[4]);
    o[2] = kP2 * even_p + kQ2 * even_q + m[5];
  }
};

/// Applies a rule to the columns and then to the rows of a square: load(i, j) gives its elements, store(i, j, v) takes
/// the results.
template <class Rule, class Load, class Store>
[[gnu::always_inline]] inline void transform(const Load& load_at, const Store& store_at) {
  Vec half[Rule::kOut][Rule::kIn];
#pragma GCC unroll 6
  for (int j = 0; j < Rule::kIn; ++j) {
    Vec in[Rule::kIn], out[Rule::kOut];
#pragma GCC unroll 6
    for (int i = 0; i < Rule::kIn; ++i) in[i] = load_at(i, j);
    Rule::apply(in, out);
#pragma GCC unroll 6
    for (int i = 0; i < Rule::kOut; ++i) half[i][j] = out[i];
  }
#pragma GCC unroll 6
  for (int i = 0; i < Rule::kOut; ++i) {
    Vec out[Rule::kOut];
    Rule::apply(half[i], out);
#pragma GCC unroll 6
    for (int j = 0; j < Rule::kOut; ++j) store_at(i, j, out[j]);
  }
}

}  // namespace plumb::cpu::winograd
