#include "ops/activation.h"

#include "ops/elementwise.h"

namespace plumb::detail {

void check_activation(const char* op, Activation a) {
  PLUMB_CHECK(a == Activation::kNone || a == Activation::kRelu, "{}: activation {} is unknown; use kNone or kRelu", op,
              static_cast<int>(a));
}

Tensor record_activation(const Tensor& z, Activation a) {
  if (a == Activation::kNone) return z;
  return record(z.detached(),
                wrt(
                    z, [](const Tensor& dy, const Tensor& out) { return unary_backward(functors::Relu{}, dy, out); },
                    functors::Relu::kName));
}

}  // namespace plumb::detail
