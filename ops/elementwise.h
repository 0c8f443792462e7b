// Elementwise ops. To add one, write a functor in kernels/functors/ (listed there) and one line here.
#pragma once

#include "../core/tensor.h"
#include "../kernels/functors/binary.h"
#include "../kernels/functors/unary.h"

namespace plumb {

/// The spec that a and b broadcast to: shapes align at the right, extents are equal or 1. Operands of the result's rank
/// must have one layout; operands of lower rank are row-major. Throws on other shapes, mixed layouts or mixed dtypes.
TensorSpec broadcast_spec(const char* op, const TensorSpec& a, const TensorSpec& b);

namespace detail {
/// Throws unless x is floating.
void check_floating(const char* op, const TensorSpec& x);
}  // namespace detail

/// f applied to every element. x: any shape and layout, f32, f64 or bf16. Keeps x, y or nothing, as the functor
/// declares. F: one of UnaryFunctors.
template <class F>
Tensor unary(F f, const Tensor& x);
/// The gradient of f: backward(dy, v), where v is what the functor keeps. It can be differentiated once with respect to
/// v, and any number of times with respect to dy.
template <class F>
Tensor unary_backward(F f, const Tensor& dy, const Tensor& v);
/// f applied to the elements of a and b, broadcast to one shape (broadcast_spec). Integers are allowed if no gradient
/// is needed. Keeps a and b; add and sub keep nothing. F: one of BinaryFunctors.
template <class F>
Tensor binary(F f, const Tensor& a, const Tensor& b);

// Ops with one operand.

/// max(x, 0); NaN stays NaN. The gradient at 0 and at NaN is 0.
inline Tensor relu(const Tensor& x) { return unary(functors::Relu{}, x); }
/// x where x > 0, negative_slope x elsewhere.
inline Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01) {
  return unary(functors::LeakyRelu{negative_slope}, x);
}
/// 1 / (1 + e^-x).
inline Tensor sigmoid(const Tensor& x) { return unary(functors::Sigmoid{}, x); }
/// The hyperbolic tangent.
inline Tensor tanh(const Tensor& x) { return unary(functors::Tanh{}, x); }
/// x (1 + erf(x / sqrt 2)) / 2 (Hendrycks, Gimpel: Gaussian error linear units, 2016).
inline Tensor gelu(const Tensor& x) { return unary(functors::Gelu{}, x); }
/// gelu's approximation by tanh, from the same paper.
inline Tensor gelu_tanh(const Tensor& x) { return unary(functors::GeluTanh{}, x); }
/// x sigmoid(x).
inline Tensor silu(const Tensor& x) { return unary(functors::Silu{}, x); }
/// log(1 + e^x), without overflow.
inline Tensor softplus(const Tensor& x) { return unary(functors::Softplus{}, x); }
/// e^x.
inline Tensor exp(const Tensor& x) { return unary(functors::Exp{}, x); }
/// The natural logarithm; NaN below 0.
inline Tensor log(const Tensor& x) { return unary(functors::Log{}, x); }
/// The square root; NaN below 0.
inline Tensor sqrt(const Tensor& x) { return unary(functors::Sqrt{}, x); }
/// x^2.
inline Tensor square(const Tensor& x) { return unary(functors::Square{}, x); }
/// 1 / x.
inline Tensor reciprocal(const Tensor& x) { return unary(functors::Reciprocal{}, x); }
/// |x|; the gradient at 0 is 0.
inline Tensor abs(const Tensor& x) { return unary(functors::Abs{}, x); }
/// x^exponent.
inline Tensor pow(const Tensor& x, double exponent) { return unary(functors::PowScalar{exponent}, x); }
/// scale x + shift.
inline Tensor affine(const Tensor& x, double scale, double shift) { return unary(functors::Affine{scale, shift}, x); }
/// -x.
inline Tensor neg(const Tensor& x) { return affine(x, -1, -0.0); }  // + 0 would make 0 of -0

// Ops with two operands.

/// a + b. For integers, this and the ops below compute modulo 2^bits.
inline Tensor add(const Tensor& a, const Tensor& b) { return binary(functors::Add{}, a, b); }
/// a - b.
inline Tensor sub(const Tensor& a, const Tensor& b) { return binary(functors::Sub{}, a, b); }
/// a b.
inline Tensor mul(const Tensor& a, const Tensor& b) { return binary(functors::Mul{}, a, b); }
/// a / b; for integers truncated, and 0 if b is 0.
inline Tensor div(const Tensor& a, const Tensor& b) { return binary(functors::Div{}, a, b); }
/// The larger of a and b; if they are equal, each has half of the gradient. NaN if either is, whose gradient it has.
inline Tensor maximum(const Tensor& a, const Tensor& b) { return binary(functors::Maximum{}, a, b); }
/// The smaller of a and b; if they are equal, each has half of the gradient. NaN if either is, whose gradient it has.
inline Tensor minimum(const Tensor& a, const Tensor& b) { return binary(functors::Minimum{}, a, b); }
/// a^b; the gradient with respect to b is 0 where a <= 0. For integers truncated: 2^-1 is 0, and so is 0^-1.
inline Tensor pow(const Tensor& a, const Tensor& b) { return binary(functors::Pow{}, a, b); }

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator-(const Tensor& x) { return neg(x); }
inline Tensor operator*(const Tensor& x, double s) { return affine(x, s, -0.0); }
inline Tensor operator*(double s, const Tensor& x) { return affine(x, s, -0.0); }
inline Tensor operator/(const Tensor& x, double s) { return unary(functors::Divide{s}, x); }
inline Tensor operator/(double s, const Tensor& x) { return unary(functors::DivideInto{s}, x); }
inline Tensor operator+(const Tensor& x, double s) { return affine(x, 1, s); }
inline Tensor operator+(double s, const Tensor& x) { return affine(x, 1, s); }
inline Tensor operator-(const Tensor& x, double s) { return affine(x, 1, -s); }
inline Tensor operator-(double s, const Tensor& x) { return affine(x, -1, s); }
// The handle takes the result: x += y is x = x + y, with its gradient. Other handles of x keep the old value; to write
// into memory, use copy_from.
inline Tensor& operator+=(Tensor& a, const Tensor& b) { return a = a + b; }
inline Tensor& operator-=(Tensor& a, const Tensor& b) { return a = a - b; }
inline Tensor& operator*=(Tensor& a, const Tensor& b) { return a = a * b; }
inline Tensor& operator/=(Tensor& a, const Tensor& b) { return a = a / b; }
inline Tensor& operator+=(Tensor& x, double s) { return x = x + s; }
inline Tensor& operator-=(Tensor& x, double s) { return x = x - s; }
inline Tensor& operator*=(Tensor& x, double s) { return x = x * s; }
inline Tensor& operator/=(Tensor& x, double s) { return x = x / s; }

}  // namespace plumb
