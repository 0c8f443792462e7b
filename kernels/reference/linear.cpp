#include "kernels/linear.h"

#include "kernels/reference/product.h"

namespace plumb {
namespace {

double products(const Shape& x, const Shape& w) {
  return 2.0 * static_cast<double>(x[0]) * static_cast<double>(w[0]) * static_cast<double>(w[1]);
}

}  // namespace

void LinearForward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Shape &x = p.in[0].shape, &y = p.out[0].shape;
  reference::ProductSpec s{.dtype = p.out[0].dtype, .m = y[0], .n = y[1], .k = x[1]};
  s.transpose_b = true;
  s.bias = p.in.size() == 3;
  s.activation = p.params.activation;
  candidates.add("reference", [s] { return reference::product_kernel(s); });
}

void LinearBackwardInput::reference(const Problem<Params>& p, Candidates& candidates) {
  const Shape &y = p.in[0].shape, &x = p.out[0].shape;
  const reference::ProductSpec s{.dtype = p.out[0].dtype, .m = x[0], .n = x[1], .k = y[1]};
  candidates.add("reference", [s] { return reference::product_kernel(s); });
}

void LinearBackwardWeight::reference(const Problem<Params>& p, Candidates& candidates) {
  const Shape &x = p.in[1].shape, &w = p.out[0].shape;
  reference::ProductSpec s{.dtype = p.out[0].dtype, .m = w[0], .n = w[1], .k = x[0]};
  s.transpose_a = true;
  candidates.add("reference", [s] { return reference::product_kernel(s); });
}

double LinearForward::flops(const Problem<Params>& p) { return products(p.in[0].shape, p.in[1].shape); }
double LinearBackwardInput::flops(const Problem<Params>& p) { return products(p.in[0].shape, p.in[1].shape); }
double LinearBackwardWeight::flops(const Problem<Params>& p) { return products(p.in[1].shape, p.out[0].shape); }

}  // namespace plumb
