#include "ops/softmax.h"

#include "dispatch/gate.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"

namespace plumb {
namespace {

Tensor forward(const char* op, const Tensor& x, int dim, bool log) {
  PLUMB_CHECK(x, "{}: x is an empty tensor", op);
  const SoftmaxParams p = softmax_params(op, x.spec(), dim, log);
  return record(run<SoftmaxForward>(p, {x}, x.spec()),
                wrt(x, op, [p](const Tensor& dy, const Tensor& y) { return softmax_backward(dy, y, p); }));
}

}  // namespace

SoftmaxParams softmax_params(const char* op, const TensorSpec& x, int dim, bool log) {
  detail::check_floating(op, x);
  const int d = dim < 0 ? dim + x.rank() : dim;
  PLUMB_CHECK(d >= 0 && d < x.rank(), "{}: dimension {} of x {} does not exist", op, dim, x.shape);
  return {d, log};
}

Tensor softmax(const Tensor& x, int dim) { return forward("softmax", x, dim, false); }
Tensor log_softmax(const Tensor& x, int dim) { return forward("log_softmax", x, dim, true); }

Tensor softmax_backward(const Tensor& dy, const Tensor& y, const SoftmaxParams& p) {
  PLUMB_CHECK(dy && y, "softmax_backward: {} is an empty tensor", dy ? "y" : "dy");
  PLUMB_CHECK(dy.spec() == y.spec(), "softmax_backward: dy is {} and y is {}; they must be of one spec", dy.spec(),
              y.spec());
  PLUMB_CHECK(p.dim >= 0 && p.dim < y.rank(), "softmax_backward: dimension {} of y {} does not exist", p.dim,
              y.shape());
  Tensor dx = run<SoftmaxBackward>(p, {dy, y}, y.spec());
  if (p.log) {
    return record(
        std::move(dx),
        wrt(dy, [p, y = SavedTensor(y)](const Tensor& g) { return sub(g, sum(mul(g, exp(y())), {p.dim}, true)); }),
        wrt(y, [p, dy = SavedTensor(dy), y = SavedTensor(y)](const Tensor& g) {
          return neg(mul(mul(g, exp(y())), sum(dy(), {p.dim}, true)));
        }));
  }
  return record(std::move(dx),  // the Jacobian is symmetric, so the gradient with respect to dy has the same formula
                wrt(dy, [p, y = SavedTensor(y)](const Tensor& g) { return softmax_backward(g, y(), p); }),
                wrt(y, [p, dy = SavedTensor(dy), y = SavedTensor(y)](const Tensor& g) {
                  const Tensor inner = sub(dy(), sum(mul(dy(), y()), {p.dim}, true));
                  return sub(mul(g, inner), mul(dy(), sum(mul(g, y()), {p.dim}, true)));
                }));
}

}  // namespace plumb
