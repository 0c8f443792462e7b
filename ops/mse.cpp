#include "ops/mse.h"

#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"

namespace plumb {

Tensor mse(const Tensor& x, const Tensor& y) {
  PLUMB_CHECK(x && y, "mse: {} is an empty tensor", x ? "y" : "x");
  PLUMB_CHECK(x.spec() == y.spec(), "mse: x is {} and y is {}; they must be of one spec", x.spec(), y.spec());
  detail::check_floating("mse", x.spec());
  PLUMB_CHECK(x.numel() > 0, "mse: x {} has no elements to average", x.shape());
  const Tensor difference = sub(x, y);
  return mean(square(x.dtype() == DType::kF64 ? difference : to(difference, DType::kF32)));
}

}  // namespace plumb
