// Elementwise functions of two numbers. One struct an op, listed once at the end.
//
// forward(a, b), and the gradients backward_a(dy, a, b) and backward_b(dy, a, b), for any T (float, double, Dual). What
// a gradient does not read of {dy, a, b}, it says by bits in kUnreadByA and kUnreadByB.
#pragma once

#include <functional>
#include <type_traits>

#include "unary.h"

namespace plumb {
namespace functors {

/// Integer arithmetic modulo 2^bits: overflow of signed integers is undefined in C++.
template <class T, class F>
constexpr T wrapped(T a, T b, F f) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(f(static_cast<U>(a), static_cast<U>(b)));
}

struct Add {  // integers: modulo 2^bits, as in sub, mul and pow
  static constexpr char kName[] = "add";
  static constexpr unsigned kUnreadByA = 0b110, kUnreadByB = 0b110;
  template <class T>
  constexpr T forward(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return wrapped(a, b, std::plus<>());
    } else {
      return a + b;
    }
  }
  template <class T>
  constexpr T backward_a(T dy, T, T) const {
    return dy;
  }
  template <class T>
  constexpr T backward_b(T dy, T, T) const {
    return dy;
  }
};

struct Sub {
  static constexpr char kName[] = "sub";
  static constexpr unsigned kUnreadByA = 0b110, kUnreadByB = 0b110;
  template <class T>
  constexpr T forward(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return wrapped(a, b, std::minus<>());
    } else {
      return a - b;
    }
  }
  template <class T>
  constexpr T backward_a(T dy, T, T) const {
    return dy;
  }
  template <class T>
  constexpr T backward_b(T dy, T, T) const {
    return -dy;
  }
};

struct Mul {
  static constexpr char kName[] = "mul";
  static constexpr unsigned kUnreadByA = 0b010, kUnreadByB = 0b100;
  template <class T>
  constexpr T forward(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return wrapped(a, b, std::multiplies<>());
    } else {
      return a * b;
    }
  }
  template <class T>
  constexpr T backward_a(T dy, T, T b) const {
    return dy * b;
  }
  template <class T>
  constexpr T backward_b(T dy, T a, T) const {
    return dy * a;
  }
};

struct Div {  // integers: truncated; x / 0 is 0 there
  static constexpr char kName[] = "div";
  static constexpr unsigned kUnreadByA = 0b010;
  template <class T>
  constexpr T forward(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == T(0)) return T(0);
      if (std::is_signed_v<T> && b == static_cast<T>(-1))
        return static_cast<T>(T(0) - static_cast<std::make_unsigned_t<T>>(a));
      return static_cast<T>(a / b);
    } else {
      return a / b;
    }
  }
  template <class T>
  constexpr T backward_a(T dy, T, T b) const {
    return dy / b;
  }
  template <class T>
  constexpr T backward_b(T dy, T a, T b) const {
    return -(dy * (a / b)) / b;  // b b may overflow, and dy / b where a is 0
  }
};

/// The part of dy that this operand of a maximum or minimum has: all if it is the result, half if both are, as in
/// PyTorch and JAX. NaN is the result, and has all (PyTorch gives it to both operands then, JAX to neither).
template <class T>
constexpr T share(T dy, T operand, T other, bool is_chosen) {
  if (is_chosen || !(operand == operand)) return dy;
  return operand == other ? dy * T(0.5f) : T(0);
}

struct Maximum {
  static constexpr char kName[] = "maximum";
  template <class T>
  constexpr T forward(T a, T b) const {
    return a >= b || !(a == a) ? a : b;
  }
  template <class T>
  constexpr T backward_a(T dy, T a, T b) const {
    return share(dy, a, b, a > b);
  }
  template <class T>
  constexpr T backward_b(T dy, T a, T b) const {
    return share(dy, b, a, b > a);
  }
};

struct Minimum {
  static constexpr char kName[] = "minimum";
  template <class T>
  constexpr T forward(T a, T b) const {
    return a <= b || !(a == a) ? a : b;
  }
  template <class T>
  constexpr T backward_a(T dy, T a, T b) const {
    return share(dy, a, b, a < b);
  }
  template <class T>
  constexpr T backward_b(T dy, T a, T b) const {
    return share(dy, b, a, b < a);
  }
};

struct Pow {  // a^b; the gradient by b is 0 where a <= 0. Integers: truncated, so that 2^-1 is 0; 0^-1 is 0
  static constexpr char kName[] = "pow";
  template <class T>
  constexpr T forward(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return integer_power(a, b);
    } else {
      return math::pow(a, b);
    }
  }
  template <class T>
  constexpr T backward_a(T dy, T a, T b) const {
    return b == T(0) ? at_exponent_zero(dy, a, b) : dy * b * math::pow(a, b - T(1));
  }
  template <class T>
  constexpr T backward_b(T dy, T a, T b) const {
    return a <= T(0) ? T(0) : dy * math::pow(a, b) * math::log(a);
  }
  /// b a^(b - 1) near b = 0, which is b / a: 0 there, but its derivative by b is 1 / a.
  template <class T>
  static constexpr T at_exponent_zero([[maybe_unused]] T dy, [[maybe_unused]] T a, [[maybe_unused]] T b) {
    if constexpr (std::is_arithmetic_v<T>) {
      return T(0);
    } else {
      return a == T(0) || !(a == a) ? T(0) : dy * (b / a);
    }
  }
  template <class T>
  static constexpr T integer_power(T a, T b) {
    if (b < T(0)) {
      const bool is_unit = a == T(1) || a == static_cast<T>(-1);
      if (!is_unit) return T(0);
      b = static_cast<T>(b & 1);  // 1 or -1 to a negative power is itself to the same parity
    }
    T power = 1;
    for (; b != T(0); b = static_cast<T>(b >> 1)) {
      if (b & 1) power = wrapped(power, a, std::multiplies<>());
      a = wrapped(a, a, std::multiplies<>());
    }
    return power;
  }
};

}  // namespace functors

/// All of them. Tests, gradient checks, benchmarks and all backends iterate over this list.
using BinaryFunctors = detail::TypeList<functors::Add, functors::Sub, functors::Mul, functors::Div, functors::Maximum,
                                        functors::Minimum, functors::Pow>;

}  // namespace plumb
