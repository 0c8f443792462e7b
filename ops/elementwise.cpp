#include "ops/elementwise.h"

#include <algorithm>
#include <tuple>

#include "core/tape.h"
#include "kernels/elementwise.h"
#include "kernels/gate.h"
#include "ops/reduce.h"

namespace plumb {

using detail::Binary;
using detail::Stage;
using detail::Unary;

TensorSpec broadcast_spec(const char* op, const TensorSpec& a, const TensorSpec& b) {
  PLUMB_CHECK(a.dtype == b.dtype, "{}: a is {} and b is {}; convert one of them with to(dtype)", op, a.dtype, b.dtype);
  const int rank = std::max(a.rank(), b.rank());
  int64_t extents[kMaxRank];
  for (int d = 1; d <= rank; ++d) {
    const int64_t ea = d <= a.rank() ? a.shape[-d] : 1, eb = d <= b.rank() ? b.shape[-d] : 1;
    PLUMB_CHECK(ea == eb || ea == 1 || eb == 1, "{}: a {} and b {} do not broadcast to one shape", op, a.shape,
                b.shape);
    extents[rank - d] = ea == 1 ? eb : ea;
  }
  const TensorSpec &wide = a.rank() == rank ? a : b, &other = a.rank() == rank ? b : a;
  PLUMB_CHECK(other.layout == (other.rank() == rank ? wide.layout : Layout::kNchw),
              "{}: a is {} and b is {}; convert one of them with to(layout)", op, a, b);
  return TensorSpec(Shape(std::span<const int64_t>(extents, static_cast<size_t>(rank))), a.dtype, wide.layout);
}

void detail::check_floating(const char* op, const TensorSpec& x) {
  PLUMB_CHECK(is_floating(x.dtype), "{}: x is {}; convert it to a floating dtype with to(dtype)", op, x);
}

namespace {

[[noreturn]] void refuse_third_derivative(const char* op) {
  fail("{}: derivatives beyond the second are not available", op);
}

}  // namespace

template <class F>
Tensor unary_backward(F f, const Tensor& dy, const Tensor& v) {
  PLUMB_CHECK(dy && v && dy.spec() == v.spec(), "{}: dy is {} and what was kept is {}; they must be of one spec",
              F::kName, dy ? to_string(dy.spec()) : "an empty tensor", v ? to_string(v.spec()) : "an empty tensor");
  const auto by_v = [f, dy = Kept(dy, F::kName), v = Kept(v, F::kName)](const Tensor& g) {
    return record(run<Unary<F, Stage::kSecond>>(f, {g, dy(), v()}, g.spec()),
                  wrt(v(), [](const Tensor&) -> Tensor { refuse_third_derivative(F::kName); }));
  };
  return record(run<Unary<F, Stage::kBackward>>(f, {dy, v}, dy.spec()),
                wrt(dy, [f, v = Kept(v, F::kName)](const Tensor& g) { return unary_backward(f, g, v()); }),
                wrt(v, by_v));
}

template <class F>
Tensor unary(F f, const Tensor& x) {
  PLUMB_CHECK(x, "{}: x is an empty tensor", F::kName);
  detail::check_floating(F::kName, x.spec());
  Tensor y = run<Unary<F, Stage::kForward>>(f, {x}, x.spec());
  if constexpr (F::kKeeps == Keeps::kInput) {
    return record(std::move(y),
                  wrt(x, [f, x = Kept(x, F::kName)](const Tensor& dy) { return unary_backward(f, dy, x()); }));
  } else if constexpr (F::kKeeps == Keeps::kOutput) {
    return record(std::move(y),
                  wrt(
                      x, [f](const Tensor& dy, const Tensor& out) { return unary_backward(f, dy, out); }, F::kName));
  } else {
    return record(std::move(y), wrt(x, [f](const Tensor& dy) { return unary_backward(f, dy, dy.detached()); }));
  }
}

namespace {

// The gradient of a binary functor by one operand, in the broadcast shape. Itself differentiable once.
template <Stage S, class F>
Tensor binary_gradient(F f, const Tensor& dy, const Tensor& a, const Tensor& b) {
  constexpr Stage kByA = S == Stage::kBackward ? Stage::kSecond : Stage::kSecondBA;
  constexpr Stage kByB = S == Stage::kBackward ? Stage::kSecondAB : Stage::kSecondBB;
  const auto second = [f]<Stage T>(std::integral_constant<Stage, T>, const Tensor& g, const Tensor& dy_,
                                   const Tensor& a_, const Tensor& b_, const Tensor& to) {
    const auto refuse = [](const Tensor&) -> Tensor { refuse_third_derivative(F::kName); };
    return sum_to(record(run<Binary<F, T>>(f, {g, dy_, a_, b_}, g.spec()), wrt(a_, refuse), wrt(b_, refuse)),
                  to.spec());
  };
  return record(
      run<Binary<F, S>>(f, {dy, a, b}, dy.spec()),
      wrt(dy, [f, a = Kept(a, F::kName),
               b = Kept(b, F::kName)](const Tensor& g) { return binary_gradient<S>(f, g, a(), b()); }),
      wrt(a, [second, dy = Kept(dy, F::kName), a = Kept(a, F::kName), b = Kept(b, F::kName)](
                 const Tensor& g) { return second(std::integral_constant<Stage, kByA>(), g, dy(), a(), b(), a()); }),
      wrt(b, [second, dy = Kept(dy, F::kName), a = Kept(a, F::kName), b = Kept(b, F::kName)](const Tensor& g) {
        return second(std::integral_constant<Stage, kByB>(), g, dy(), a(), b(), b());
      }));
}

}  // namespace

template <class F>
Tensor binary(F f, const Tensor& a, const Tensor& b) {
  PLUMB_CHECK(a && b, "{}: {} is an empty tensor", F::kName, a ? "b" : "a");
  const TensorSpec spec = a.spec() == b.spec() ? a.spec() : broadcast_spec(F::kName, a.spec(), b.spec());
  Tensor y = run<Binary<F, Stage::kForward>>(f, {a, b}, spec);
  constexpr bool kIsSub = std::is_same_v<F, functors::Sub>;
  if constexpr (std::is_same_v<F, functors::Add> || kIsSub) {  // the gradient of a is dy itself
    return record(std::move(y), wrt(a, [s = a.spec()](const Tensor& dy) { return sum_to(dy, s); }),
                  wrt(b, [s = b.spec()](const Tensor& dy) {
                    const Tensor db = sum_to(dy, s);
                    return kIsSub ? unary(functors::Affine{-1.0, 0.0}, db) : db;
                  }));
  } else {
    return record(std::move(y),
                  wrt(a,
                      [f, a = Kept(a, F::kName), b = Kept(b, F::kName)](const Tensor& dy) {
                        return sum_to(binary_gradient<Stage::kBackward>(f, dy, a(), b()), a().spec());
                      }),
                  wrt(b, [f, a = Kept(a, F::kName), b = Kept(b, F::kName)](const Tensor& dy) {
                    return sum_to(binary_gradient<Stage::kBackwardB>(f, dy, a(), b()), b().spec());
                  }));
  }
}

namespace {

// The header only declares the templates: the functions of every functor are made here.
[[gnu::used]] constexpr auto kFunctions = []<class... U, class... B>(detail::TypeList<U...>, detail::TypeList<B...>) {
  return std::tuple(&unary<U>..., &unary_backward<U>..., &binary<B>...);
}(UnaryFunctors(), BinaryFunctors());

}  // namespace
}  // namespace plumb
