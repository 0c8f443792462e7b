#include "kernels/linear.h"

#include "kernels/reference/elements.h"
#include "kernels/reference/gemm/product.h"

namespace plumb {
namespace {

using reference::Elements;
using reference::for_each_index;
using reference::Index;

double products(const Shape& x, const Shape& w) {
  return 2.0 * static_cast<double>(x[0]) * static_cast<double>(w[0]) * static_cast<double>(w[1]);
}

// y from {x, w} or {x, w, b}, dx from {dy, w}, and dw from {dy, x}.
reference::ProductSpec forward_product(std::span<const TensorSpec> in, const TensorSpec& y, Activation activation) {
  reference::ProductSpec s{.dtype = y.dtype, .m = y.shape[0], .n = y.shape[1], .k = in[0].shape[1]};
  s.transpose_b = true;
  s.bias = in.size() == 3;
  s.activation = activation;
  return s;
}
reference::ProductSpec input_product(const TensorSpec& dy, const TensorSpec& dx) {
  return {.dtype = dx.dtype, .m = dx.shape[0], .n = dx.shape[1], .k = dy.shape[1]};
}
reference::ProductSpec weight_product(const TensorSpec& x, const TensorSpec& dw) {
  reference::ProductSpec s{.dtype = dw.dtype, .m = dw.shape[0], .n = dw.shape[1], .k = x.shape[0]};
  s.transpose_a = true;
  return s;
}

void offer(const reference::ProductSpec& s, Candidates& candidates) {
  candidates.add(Provider::kReference, "reference", [s] { return reference::product_kernel(s); });
}

// Shared by all copies of what runs it.
std::shared_ptr<const Kernel> product_of(const reference::ProductSpec& s) { return reference::product_kernel(s); }

// The bit of an element in a mask.
struct Bit {
  Index byte;
  int shift;
  explicit Bit(const Index& i) : byte{{i[0], i[1] / 8}}, shift(static_cast<int>(i[1] % 8)) {}
};

}  // namespace

void LinearForward::reference(const Problem<Params>& p, Candidates& candidates) {
  offer(forward_product(p.in, p.out[0], p.params.activation), candidates);
}

void LinearBackwardInput::reference(const Problem<Params>& p, Candidates& candidates) {
  offer(input_product(p.in[0], p.out[0]), candidates);
}

void LinearBackwardWeight::reference(const Problem<Params>& p, Candidates& candidates) {
  offer(weight_product(p.in[1], p.out[0]), candidates);
}

void LinearBackwardWeightBias::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements dy(p.in[0]), db(p.out[1]);
  if (!reference::computes_on(dy.dtype())) return;
  reference::offer(kName, candidates, [=, dw = product_of(weight_product(p.in[1], p.out[0]))](const Launch& l) {
    dw->run({l.in, l.out, nullptr});
    for_each_index(db.shape(), [&](const Index& i) {
      double sum = 0;
      for (int64_t n = 0; n < dy.shape()[0]; ++n) sum += dy.load(l.in[0], {{n, i[0]}});
      db.store(l.out[1], i, sum);
    });
  });
}

void LinearForwardMask::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements y(p.out[0]), mask(p.out[1]);
  if (!reference::computes_on(y.dtype())) return;
  const auto product = product_of(forward_product(p.in, p.out[0], Activation::kRelu));
  reference::offer(kName, candidates, [=](const Launch& l) {
    product->run({l.in, l.out, nullptr});
    for_each_index(mask.shape(), [&](const Index& i) { mask.store_integer(l.out[1], i, 0); });
    for_each_index(y.shape(), [&](const Index& i) {
      if (!(y.load(l.out[0], i) > 0)) return;
      const Bit bit(i);
      mask.store_integer(l.out[1], bit.byte, mask.load_integer(l.out[1], bit.byte) | 1 << bit.shift);
    });
  });
}

void LinearBackwardInputMask::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements mask(p.in[2]), dx(p.out[0]);
  if (!reference::computes_on(dx.dtype())) return;
  reference::offer(kName, candidates, [=, product = product_of(input_product(p.in[0], p.out[0]))](const Launch& l) {
    product->run({l.in, l.out, nullptr});
    for_each_index(dx.shape(), [&](const Index& i) {
      const Bit bit(i);
      if (!(mask.load_integer(l.in[2], bit.byte) >> bit.shift & 1)) dx.store(l.out[0], i, 0);
    });
  });
}

void LinearBackward::reference(const Problem<Params>& p, Candidates& candidates) {
  if (!reference::computes_on(p.out[0].dtype)) return;
  const auto dx = product_of(input_product(p.in[0], p.out[0])), dw = product_of(weight_product(p.in[1], p.out[1]));
  reference::offer(kName, candidates, [=](const Launch& l) {
    void* const dy_w[] = {l.in[0], l.in[2]};
    dx->run({dy_w, l.out, nullptr});
    dw->run({l.in, l.out + 1, nullptr});
  });
}

double LinearForward::flops(const Problem<Params>& p) { return products(p.in[0].shape, p.in[1].shape); }
double LinearBackwardInput::flops(const Problem<Params>& p) { return products(p.in[0].shape, p.in[1].shape); }
double LinearBackwardWeight::flops(const Problem<Params>& p) { return products(p.in[1].shape, p.out[0].shape); }
double LinearBackwardWeightBias::flops(const Problem<Params>& p) { return products(p.in[1].shape, p.out[0].shape); }
double LinearForwardMask::flops(const Problem<Params>& p) { return products(p.in[0].shape, p.in[1].shape); }
double LinearBackwardInputMask::flops(const Problem<Params>& p) { return products(p.in[0].shape, p.in[1].shape); }
double LinearBackward::flops(const Problem<Params>& p) { return 2 * products(p.in[1].shape, p.out[1].shape); }

}  // namespace plumb
