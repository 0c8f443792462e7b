// Mathematics that functors are written in: on float, double and dual numbers, on host and device.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "../../core/host_device.h"

namespace plumb::functors {

/// A number and its derivative along one direction. A functor's gradient evaluated on duals gives its second
/// derivative.
template <class T>
struct Dual {
  T v{}, d{};
  constexpr Dual() = default;
  template <class U>
  requires std::is_arithmetic_v<U>
  constexpr Dual(U value) : v(static_cast<T>(value)) {}
  constexpr Dual(T value, T derivative) : v(value), d(derivative) {}
  friend constexpr Dual operator+(Dual a, Dual b) { return {a.v + b.v, a.d + b.d}; }
  friend constexpr Dual operator-(Dual a, Dual b) { return {a.v - b.v, a.d - b.d}; }
  friend constexpr Dual operator-(Dual a) { return {-a.v, -a.d}; }
  friend constexpr Dual operator*(Dual a, Dual b) { return {a.v * b.v, part(a.d, b.v) + part(b.d, a.v)}; }
  friend constexpr Dual operator/(Dual a, Dual b) {
    const T d = a.d - part(b.d, a.v / b.v);
    return {a.v / b.v, d == T(0) ? T(0) : d / b.v};
  }
  friend constexpr bool operator<(Dual a, Dual b) { return a.v < b.v; }
  friend constexpr bool operator>(Dual a, Dual b) { return a.v > b.v; }
  friend constexpr bool operator<=(Dual a, Dual b) { return a.v <= b.v; }
  friend constexpr bool operator>=(Dual a, Dual b) { return a.v >= b.v; }
  friend constexpr bool operator==(Dual a, Dual b) { return a.v == b.v; }

 private:
  // What does not vary has no part in a derivative, be it a factor of infinity, of which 0 times would be NaN.
  static constexpr T part(T d, T factor) { return d == T(0) ? T(0) : d * factor; }
};

namespace math {

namespace detail {
/// The polynomial with these coefficients, the highest first, by Horner's scheme.
template <class... Floats>
constexpr float polynomial(float x, float highest, Floats... others) {
  float p = highest;
  ((p = p * x + others), ...);
  return p;
}
}  // namespace detail

// Float versions but pow are branch-free, so that loops over them vectorise; double versions are the standard
// library's. No number is limited from both sides, since g++ makes three comparisons of that.

PLUMB_HOST_DEVICE inline double abs(double x) { return std::fabs(x); }
PLUMB_HOST_DEVICE inline float abs(float x) { return std::fabs(x); }

namespace detail {
inline constexpr float kRounder = 0x1.8p23f;  // what is added to it is rounded to a whole number, in its last bits
PLUMB_HOST_DEVICE inline int32_t whole_of(float rounded) { return std::bit_cast<int32_t>(rounded) - 0x4b400000; }
/// 2^n; 0 for n = -127.
PLUMB_HOST_DEVICE inline float power_of_two(int32_t n) {
  return std::bit_cast<float>((static_cast<uint32_t>(n) + 127u) << 23);
}
/// e^(x - n ln 2), a polynomial for numbers up to ln 2 / 2.
PLUMB_HOST_DEVICE inline float exp_rest(float x, float n) {
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  const float tail = polynomial(r, 1.38145941e-3f, 8.36871937e-3f, 4.1668389e-2f, 1.66665211e-1f, 4.9999994e-1f);
  return tail * r * r + r + 1.0f;
}
}  // namespace detail

PLUMB_HOST_DEVICE inline double exp(double x) { return std::exp(x); }
/// 2 ulp. e^x = 2^n e^r with n the nearest integer to x / ln 2.
PLUMB_HOST_DEVICE inline float exp(float x) {
  const float above = x < -104.0f ? -104.0f : x;  // keeps NaN; e^-104 is zero
  const int32_t rounded = detail::whole_of(above * 1.44269504f + detail::kRounder);
  const int32_t n = rounded > 128 ? 128 : rounded, half = n >> 1;  // two factors, since 2^n may not be a normal number
  return detail::exp_rest(above, static_cast<float>(n)) * detail::power_of_two(half) * detail::power_of_two(n - half);
}
PLUMB_HOST_DEVICE inline double exp_below(double x) { return std::exp(x); }
/// e^x for x up to 0: the same, but 0 where that is less than about 2^-126.5, so that one factor does.
PLUMB_HOST_DEVICE inline float exp_below(float x) {
  const float above = x < -88.1f ? -88.1f : x;  // keeps NaN
  const float rounded = above * 1.44269504f + detail::kRounder;
  return detail::exp_rest(above, rounded - detail::kRounder) * detail::power_of_two(detail::whole_of(rounded));
}
PLUMB_HOST_DEVICE inline double exp_minus_abs(double x) { return std::exp(-std::fabs(x)); }
/// e^-|x|, 2 ulp. Without large results one factor does, if it is 2^64 too large: then it is a normal number.
PLUMB_HOST_DEVICE inline float exp_minus_abs(float x) {
#ifdef __CUDA_ARCH__
  return exp(-abs(x));
#else
  const float below = -abs(x), above = below < -104.0f ? -104.0f : below;
  const float rounded = above * 1.44269504f + detail::kRounder;
  const float scale = detail::power_of_two(detail::whole_of(rounded) + 64);
  return detail::exp_rest(above, rounded - detail::kRounder) * scale * 0x1p-64f;
#endif
}
/// e^x for numbers that are rounded to 16 bits: a device's own power of two, off by 2^-22 and |x| 2^-24 of it.
PLUMB_HOST_DEVICE inline float exp_narrow(float x) {
#ifdef __CUDA_ARCH__
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 1.44269504f));
  return power;
#else
  return exp(x);
#endif
}
PLUMB_HOST_DEVICE inline double gauss(double x) { return std::exp(-0.5 * x * x); }
/// e^(-x^2 / 2), and 0 where that is less than about 2^-126.5.
PLUMB_HOST_DEVICE inline float gauss(float x) { return exp_below(-0.5f * x * x); }

namespace detail {
inline constexpr uint32_t kRootHalf = 0x3f3504f3;  // the bits of sqrt 1/2
/// The n of a positive number 2^n (1 + r) of these bits, with 1 + r in [sqrt 1/2, sqrt 2), and that 1 + r.
PLUMB_HOST_DEVICE inline int32_t power_in(uint32_t bits) { return static_cast<int32_t>(bits - kRootHalf) >> 23; }
PLUMB_HOST_DEVICE inline float without_power(uint32_t bits, int32_t n) {
  return std::bit_cast<float>(bits - (static_cast<uint32_t>(n) << 23));
}
/// log(2^n (1 + r)) for these: a polynomial.
PLUMB_HOST_DEVICE inline float log_of(float n, float r) {
  const float p =
      detail::polynomial(r, 7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                         -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f);
  const float square = r * r;
  const float small = p * (square * r) - (n * 2.12194440e-4f + 0.5f * square);
  return n * 0.693359375f + (r + small);
}
/// The logarithm of x, which is y if x is positive and finite.
PLUMB_HOST_DEVICE inline float log_or_limit(float x, float y) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float otherwise = x == 0.0f ? -kInfinity : std::numeric_limits<float>::quiet_NaN();
  const float finite = x > 0.0f ? y : otherwise;
  return x == kInfinity ? x : finite;
}
}  // namespace detail

PLUMB_HOST_DEVICE inline double log(double x) { return std::log(x); }
/// 1 ulp. x = 2^n (1 + r); numbers too small to be normal are made so first. (The scale is chosen once, or g++ computes
/// what follows from it for both.)
PLUMB_HOST_DEVICE inline float log(float x) {
  const float scale = x < std::numeric_limits<float>::min() ? 0x1p23f : 1.0f;
  const auto bits = std::bit_cast<uint32_t>(x * scale);
  const int32_t n = detail::power_in(bits), of_scale = detail::power_in(std::bit_cast<uint32_t>(scale));
  const float y = detail::log_of(static_cast<float>(n - of_scale), detail::without_power(bits, n) - 1.0f);
  return detail::log_or_limit(x, y);
}

PLUMB_HOST_DEVICE inline double log1p(double x) { return std::log1p(x); }
/// 2 ulp. 1 + x = 2^n (1 + r), and r has back what 1 + x was rounded by.
PLUMB_HOST_DEVICE inline float log1p(float x) {
  const float sum = 1.0f + x, lost = x - (sum - 1.0f);
  const auto bits = std::bit_cast<uint32_t>(sum);
  const int32_t n = detail::power_in(bits);
  const float mantissa = detail::without_power(bits, n), r = (mantissa - 1.0f) + lost * (mantissa / sum);
  return detail::log_or_limit(sum, detail::log_of(static_cast<float>(n), r));
}
namespace detail {
PLUMB_HOST_DEVICE inline double log1p_of_share(double x) { return std::log1p(x); }
/// log1p of a number from 0 to 1, or NaN: 2 ulp. A polynomial.
PLUMB_HOST_DEVICE inline float log1p_of_share(float x) {
  return x * detail::polynomial(x - 0.5f, -3.24402284e-3f, 5.25335176e-3f, -6.74991263e-3f, 1.15761496e-2f,
                                -2.05702949e-2f, 3.66354734e-2f, -6.76876977e-2f, 1.32609010e-1f, -2.88527101e-1f,
                                8.10930192e-1f);
}
}  // namespace detail
PLUMB_HOST_DEVICE inline double sqrt(double x) { return std::sqrt(x); }
PLUMB_HOST_DEVICE inline float sqrt(float x) { return std::sqrt(x); }
PLUMB_HOST_DEVICE inline double tanh(double x) { return std::tanh(x); }
/// 2 ulp. An odd polynomial near zero, where 1 - 2 e / (1 + e) with e = e^-2x would cancel.
PLUMB_HOST_DEVICE inline float tanh(float x) {
  const float s = x * x;
  const float p = detail::polynomial(s, -5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f,
                                     -3.33332819422e-1f);
  const float near = x + x * s * p;
  const float a = abs(x);
  const float e = exp_below(-2.0f * a), far = 1.0f - 2.0f * e / (1.0f + e);
  return std::copysign(a < 0.625f ? near : far, x);  // near is +0 at -0
}
PLUMB_HOST_DEVICE inline double erf(double x) { return std::erf(x); }
/// 2 ulp. An odd polynomial up to 1, and 1 - e^q from there, q a polynomial for log(1 - erf |x|), until that is 1.
PLUMB_HOST_DEVICE inline float erf(float x) {
  const float s = x * x;
  const float p = detail::polynomial(s, 7.88911930e-5f, -8.02084105e-4f, 5.18953521e-3f, -2.68544443e-2f,
                                     1.12836003e-1f, -3.76126260e-1f, 1.28379166e-1f);
  const float a = abs(x), t = a > 4.0f ? 4.0f : a;  // keeps NaN
  const float q =
      detail::polynomial(t, 1.86071725e-6f, -3.01978562e-5f, 1.91806481e-4f, -4.21880191e-4f, -2.00403226e-3f,
                         2.15389971e-2f, -1.04414709e-1f, -6.35978341e-1f, -1.12848902e+0f);
  const float far = 1.0f - exp(q * t);
  return a < 1.0f ? x + x * p : std::copysign(far, x);
}
namespace detail {
/// a / b, of numbers far from the smallest and the largest: a device's division looks for those first. 1 ulp.
PLUMB_HOST_DEVICE inline float quotient(float a, float b) {
#ifdef __CUDA_ARCH__
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(b));
  const float q = a * inverse;
  return q + (a - q * b) * inverse;
#else
  return a / b;
#endif
}
}  // namespace detail
PLUMB_HOST_DEVICE inline double normal_cdf(double x) { return 0.5 * std::erfc(x * -0.70710678118654752440); }
/// The share of the standard normal distribution below x: 2.5 ulp above 0; below, the error grows with x^2, as that of
/// e^(-x^2 / 2) does. That is multiplied by half the scaled erfc, which is a quotient of polynomials (as in Cody:
/// Rational Chebyshev approximations for the error function, 1969).
PLUMB_HOST_DEVICE inline float normal_cdf(float x) {
  const float a = abs(x), t = a > 14.0f ? 14.0f : a;  // keeps NaN; e^(-14^2 / 2) is zero
  const float above = detail::polynomial(t, 1.410961e-2f, 1.069461e-1f, 3.3981084e-1f, 4.9999998e-1f);
  const float below = detail::polynomial(t, 3.538009e-2f, 2.6766058e-1f, 8.9279786e-1f, 1.47750363f, 1.0f);
  const float tail = gauss(x) * detail::quotient(above, below);
  return x < 0 ? tail : 1.0f - tail;
}
PLUMB_HOST_DEVICE inline double pow(double x, double y) { return std::pow(x, y); }
PLUMB_HOST_DEVICE inline float pow(float x, float y) { return std::pow(x, y); }

template <class T>
PLUMB_HOST_DEVICE Dual<T> abs(Dual<T> x) {
  return x < Dual<T>(0) ? -x : x;
}
template <class T>
PLUMB_HOST_DEVICE Dual<T> exp(Dual<T> x) {
  const T y = exp(x.v);
  return {y, y == T(0) ? T(0) : y * x.d};
}
template <class T>
PLUMB_HOST_DEVICE Dual<T> exp_minus_abs(Dual<T> x) {
  return exp(-abs(x));
}
template <class T>
PLUMB_HOST_DEVICE Dual<T> log(Dual<T> x) {
  return {log(x.v), x.d / x.v};
}
template <class T>
PLUMB_HOST_DEVICE Dual<T> log1p(Dual<T> x) {
  return {log1p(x.v), x.d / (T(1) + x.v)};
}
template <class T>
PLUMB_HOST_DEVICE Dual<T> sqrt(Dual<T> x) {
  const T y = sqrt(x.v);
  return {y, x.d / (T(2) * y)};
}
template <class T>
PLUMB_HOST_DEVICE Dual<T> tanh(Dual<T> x) {
  const T y = tanh(x.v);
  return {y, (T(1) - y * y) * x.d};
}
template <class T>
PLUMB_HOST_DEVICE Dual<T> erf(Dual<T> x) {
  return {erf(x.v), T(1.12837916709551257390) * exp(-x.v * x.v) * x.d};
}
template <class T>
PLUMB_HOST_DEVICE Dual<T> gauss(Dual<T> x) {
  const T y = gauss(x.v);
  return {y, y == T(0) ? T(0) : -x.v * y * x.d};
}
template <class T>
PLUMB_HOST_DEVICE Dual<T> normal_cdf(Dual<T> x) {
  return {normal_cdf(x.v), T(0.39894228040143267794) * gauss(x.v) * x.d};
}
template <class T>
PLUMB_HOST_DEVICE Dual<T> pow(Dual<T> x, Dual<T> y) {
  const T p = pow(x.v, y.v);
  const T by_base = y.v == T(0) ? T(0) : y.v * pow(x.v, y.v - T(1));
  const T by_exponent = x.v <= T(0) ? T(0) : p * log(x.v);
  return {p, (x.d == T(0) ? T(0) : by_base * x.d) + (y.d == T(0) ? T(0) : by_exponent * y.d)};
}

namespace detail {
template <class T>
PLUMB_HOST_DEVICE Dual<T> log1p_of_share(Dual<T> x) {
  return log1p(x);
}
}  // namespace detail
/// log(1 + e^x), from the larger of x and 0 so that it neither overflows nor loses its tail.
template <class T>
PLUMB_HOST_DEVICE T softplus(T x) {
  return (x > T(0) ? x : T(0)) + detail::log1p_of_share(exp_minus_abs(x));
}
/// 1 / (1 + e^-x), from e^-|x| so that nothing overflows.
template <class T>
PLUMB_HOST_DEVICE T sigmoid(T x) {
  const T e = exp_minus_abs(x), s = T(1) / (T(1) + e);
  return x < T(0) ? e * s : s;
}

}  // namespace math
}  // namespace plumb::functors
