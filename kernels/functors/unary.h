// Elementwise functions of one number. One struct an op, listed once at the end.
//
// A functor has its name, what its gradient is computed from (the input, the output or neither), forward(x) and
// backward(dy, v), where v is that input or output. Attributes are members; the functor's bytes are the op's
// parameters. Everything is written for any T (float, double, Dual): gradients of gradients follow by evaluation on
// dual numbers.
#pragma once

#include "../../core/hash.h"
#include "list.h"
#include "math.h"

namespace plumb {

/// What the gradient of an elementwise op is computed from, and so what the tape keeps.
enum class Keeps { kNothing, kInput, kOutput };

namespace functors {

struct Relu {  // max(x, 0); NaN stays NaN
  static constexpr char kName[] = "relu";
  static constexpr Keeps kKeeps = Keeps::kOutput;
  template <class T>
  constexpr T forward(T x) const {
    return x < T(0) ? T(0) : x;
  }
  template <class T>
  constexpr T backward(T dy, T y) const {
    return y > T(0) ? dy : T(0);
  }
};

struct LeakyRelu {  // x for x > 0, slope x otherwise
  static constexpr char kName[] = "leaky_relu";
  static constexpr Keeps kKeeps = Keeps::kInput;
  Real negative_slope = 0.01;
  template <class T>
  constexpr T forward(T x) const {
    return x > T(0) ? x : x * slope<T>();
  }
  template <class T>
  constexpr T backward(T dy, T x) const {
    return x > T(0) ? dy : dy * slope<T>();
  }
  template <class T>
  constexpr T slope() const {
    return T(static_cast<double>(negative_slope));
  }
};

struct Sigmoid {  // 1 / (1 + e^-x)
  static constexpr char kName[] = "sigmoid";
  static constexpr Keeps kKeeps = Keeps::kOutput;
  template <class T>
  constexpr T forward(T x) const {
    return math::sigmoid(x);
  }
  template <class T>
  constexpr T backward(T dy, T y) const {
    return dy * y * (T(1) - y);
  }
};

struct Tanh {
  static constexpr char kName[] = "tanh";
  static constexpr Keeps kKeeps = Keeps::kOutput;
  template <class T>
  constexpr T forward(T x) const {
    return math::tanh(x);
  }
  template <class T>
  constexpr T backward(T dy, T y) const {
    return dy * (T(1) - y * y);
  }
};

struct Gelu {  // x Phi(x), Phi the normal distribution's (Hendrycks, Gimpel 2016)
  static constexpr char kName[] = "gelu";
  static constexpr Keeps kKeeps = Keeps::kInput;
  template <class T>
  constexpr T forward(T x) const {
    return x * math::normal_cdf(x);
  }
  template <class T>
  constexpr T backward(T dy, T x) const {
    const T phi = T(0.39894228040143267794) * math::gauss(x);
    return dy * (math::normal_cdf(x) + x * phi);
  }
};

struct GeluTanh {  // the tanh approximation of gelu, from the same paper; (1 + tanh z) / 2 = sigmoid(2 z)
  static constexpr char kName[] = "gelu_tanh";
  static constexpr Keeps kKeeps = Keeps::kInput;
  template <class T>
  static constexpr T inner(T x) {
    return T(1.59576912160573071176) * (x + T(0.044715) * x * x * x);
  }
  template <class T>
  constexpr T forward(T x) const {
    return x * math::sigmoid(inner(x));
  }
  template <class T>
  constexpr T backward(T dy, T x) const {
    const T s = math::sigmoid(inner(x)), bend = s * (T(1) - s);
    const T slope = T(1.59576912160573071176) * (T(1) + T(3 * 0.044715) * x * x);
    // Far from 0 there is no bend, and the slope is infinite.
    return dy * (s + (bend == T(0) ? T(0) : x * bend * slope));
  }
};

struct Silu {  // x sigmoid(x)
  static constexpr char kName[] = "silu";
  static constexpr Keeps kKeeps = Keeps::kInput;
  template <class T>
  constexpr T forward(T x) const {
    return x * math::sigmoid(x);
  }
  template <class T>
  constexpr T backward(T dy, T x) const {
    const T s = math::sigmoid(x);
    return dy * (s + x * s * (T(1) - s));
  }
};

struct Softplus {  // log(1 + e^x)
  static constexpr char kName[] = "softplus";
  static constexpr Keeps kKeeps = Keeps::kInput;
  template <class T>
  constexpr T forward(T x) const {
    return math::softplus(x);
  }
  template <class T>
  constexpr T backward(T dy, T x) const {
    return dy * math::sigmoid(x);
  }
};

struct Exp {
  static constexpr char kName[] = "exp";
  static constexpr Keeps kKeeps = Keeps::kOutput;
  template <class T>
  constexpr T forward(T x) const {
    return math::exp(x);
  }
  template <class T>
  constexpr T backward(T dy, T y) const {
    return dy * y;
  }
};

struct Log {
  static constexpr char kName[] = "log";
  static constexpr Keeps kKeeps = Keeps::kInput;
  template <class T>
  constexpr T forward(T x) const {
    return math::log(x);
  }
  template <class T>
  constexpr T backward(T dy, T x) const {
    return dy / x;
  }
};

struct Sqrt {
  static constexpr char kName[] = "sqrt";
  static constexpr Keeps kKeeps = Keeps::kOutput;
  template <class T>
  constexpr T forward(T x) const {
    return math::sqrt(x);
  }
  template <class T>
  constexpr T backward(T dy, T y) const {
    return dy / (T(2) * y);
  }
};

struct Square {
  static constexpr char kName[] = "square";
  static constexpr Keeps kKeeps = Keeps::kInput;
  template <class T>
  constexpr T forward(T x) const {
    return x * x;
  }
  template <class T>
  constexpr T backward(T dy, T x) const {
    return T(2) * dy * x;
  }
};

struct Reciprocal {  // 1 / x
  static constexpr char kName[] = "reciprocal";
  static constexpr Keeps kKeeps = Keeps::kOutput;
  template <class T>
  constexpr T forward(T x) const {
    return T(1) / x;
  }
  template <class T>
  constexpr T backward(T dy, T y) const {
    return -(dy * y * y);
  }
};

struct Abs {  // the gradient at 0 is 0
  static constexpr char kName[] = "abs";
  static constexpr Keeps kKeeps = Keeps::kInput;
  template <class T>
  constexpr T forward(T x) const {
    return math::abs(x);
  }
  template <class T>
  constexpr T backward(T dy, T x) const {
    return x > T(0) ? dy : (x < T(0) ? -dy : T(0));
  }
};

struct PowScalar {  // x^p for a constant p
  static constexpr char kName[] = "pow_scalar";
  static constexpr Keeps kKeeps = Keeps::kInput;
  Real exponent = 1.0;
  template <class T>
  constexpr T forward(T x) const {
    return math::pow(x, T(value()));
  }
  template <class T>
  constexpr T backward(T dy, T x) const {
    return value() == 0 ? T(0) : dy * T(value()) * math::pow(x, T(value() - 1));
  }
  constexpr double value() const { return exponent; }
};

struct Divide {  // x / divisor for a constant: not x times its reciprocal, which rounds twice and may overflow
  static constexpr char kName[] = "divide";
  static constexpr Keeps kKeeps = Keeps::kNothing;
  Real divisor = 1.0;
  template <class T>
  constexpr T forward(T x) const {
    return x / T(static_cast<double>(divisor));
  }
  template <class T>
  constexpr T backward(T dy, T) const {
    return dy / T(static_cast<double>(divisor));
  }
};

struct DivideInto {  // numerator / x for a constant
  static constexpr char kName[] = "divide_into";
  static constexpr Keeps kKeeps = Keeps::kInput;
  Real numerator = 1.0;
  template <class T>
  constexpr T forward(T x) const {
    return T(static_cast<double>(numerator)) / x;
  }
  template <class T>
  constexpr T backward(T dy, T x) const {
    return -(dy * (T(static_cast<double>(numerator)) / x)) / x;
  }
};

struct Affine {  // scale x + shift for constants; scaling and negation are this
  static constexpr char kName[] = "affine";
  static constexpr Keeps kKeeps = Keeps::kNothing;
  Real scale = 1.0, shift = 0.0;
  template <class T>
  constexpr T forward(T x) const {
    return x * T(static_cast<double>(scale)) + T(static_cast<double>(shift));
  }
  template <class T>
  constexpr T backward(T dy, T) const {
    return dy * T(static_cast<double>(scale));
  }
};

}  // namespace functors

/// All of them. Tests, gradient checks, benchmarks and all backends iterate over this list.
using UnaryFunctors =
    detail::TypeList<functors::Relu, functors::LeakyRelu, functors::Sigmoid, functors::Tanh, functors::Gelu,
                     functors::GeluTanh, functors::Silu, functors::Softplus, functors::Exp, functors::Log,
                     functors::Sqrt, functors::Square, functors::Reciprocal, functors::Abs, functors::PowScalar,
                     functors::Divide, functors::DivideInto, functors::Affine>;

}  // namespace plumb
