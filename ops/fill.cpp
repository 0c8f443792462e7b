#include "ops/fill.h"

#include "dispatch/gate.h"
#include "kernels/fill.h"

namespace plumb {

Tensor full(const TensorSpec& spec, double value) { return run<Fill>({value}, {}, spec); }

Tensor zeros_like(const Tensor& x) {
  PLUMB_CHECK(x, "zeros_like: x is an empty tensor");
  const DeviceScope on(x.device());
  return full(x.spec(), 0);
}

Tensor ones_like(const Tensor& x) {
  PLUMB_CHECK(x, "ones_like: x is an empty tensor");
  const DeviceScope on(x.device());
  return full(x.spec(), 1);
}

}  // namespace plumb
