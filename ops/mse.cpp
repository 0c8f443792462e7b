#include "ops/mse.h"

#include "dispatch/gate.h"
#include "kernels/mse.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/reduce.h"

namespace plumb {
namespace {

TensorSpec mse_output(const TensorSpec& x) { return {Shape(), x.dtype == DType::kF64 ? DType::kF64 : DType::kF32}; }

// 2 g dy / n, the gradient of mse_backward with respect to x and, its sign changed, to y.
Tensor spread(const Tensor& g, const Tensor& dy) {
  return mul(g, to(dy, g.dtype()) * (2.0 / static_cast<double>(g.numel())));
}

// The gradient with respect to x; with respect to y if they change places.
Tensor mse_backward(const Tensor& dy, const Tensor& x, const Tensor& y) {
  return record(run<MseBackward>({}, {dy, x, y}, x.spec()),
                wrt(dy, "mse",
                    [x = SavedTensor(x, "mse"), y = SavedTensor(y, "mse"), s = dy.spec()](const Tensor& g) {
                      const DeviceScope on(g.device());
                      const Tensor slope = mse_backward(ones(s), to(x(), s.dtype), to(y(), s.dtype));
                      return sum(mul(to(g, s.dtype), slope));  // of bf16, as exact as the loss
                    }),
                wrt(x, "mse", [dy = SavedTensor(dy, "mse")](const Tensor& g) { return spread(g, dy()); }),
                wrt(y, "mse", [dy = SavedTensor(dy, "mse")](const Tensor& g) { return spread(neg(g), dy()); }));
}

}  // namespace

Tensor mse(const Tensor& x, const Tensor& y) {
  PLUMB_CHECK(x && y, "mse: {} is an empty tensor", x ? "y" : "x");
  PLUMB_CHECK(x.spec() == y.spec(), "mse: x is {} and y is {}; they must be of one spec", x.spec(), y.spec());
  detail::check_floating("mse", x.spec());
  PLUMB_CHECK(x.numel() > 0, "mse: x {} has no elements to average", x.shape());
  return record(
      run<MseForward>({}, {x, y}, mse_output(x.spec())),
      wrt(x, [x = SavedTensor(x), y = SavedTensor(y)](const Tensor& dy) { return mse_backward(dy, x(), y()); }),
      wrt(y, [x = SavedTensor(x), y = SavedTensor(y)](const Tensor& dy) { return mse_backward(dy, y(), x()); }));
}

}  // namespace plumb
