#include "kernels/linear.h"

#include "kernels/reduce.h"
#include "kernels/reference/product.h"

namespace plumb {
namespace {

double products(const Shape& x, const Shape& w) {
  return 2.0 * static_cast<double>(x[0]) * static_cast<double>(w[0]) * static_cast<double>(w[1]);
}

// dx from {dy, w}, and dw from {dy, x}.
reference::ProductSpec input_product(const TensorSpec& dy, const TensorSpec& dx) {
  return {.dtype = dx.dtype, .m = dx.shape[0], .n = dx.shape[1], .k = dy.shape[1]};
}
reference::ProductSpec weight_product(const TensorSpec& x, const TensorSpec& dw) {
  reference::ProductSpec s{.dtype = dw.dtype, .m = dw.shape[0], .n = dw.shape[1], .k = x.shape[0]};
  s.transpose_a = true;
  return s;
}

class BothProducts final : public Kernel {
 public:
  BothProducts(const reference::ProductSpec& dx, const reference::ProductSpec& dw)
      : Kernel("reference:both"), dx_(reference::product_kernel(dx)), dw_(reference::product_kernel(dw)) {}
  void run(const Launch& l) const override {
    void* const dy_w[] = {l.in[0], l.in[2]};
    dx_->run({dy_w, l.out, nullptr});
    dw_->run({l.in, l.out + 1, nullptr});
  }

 private:
  std::unique_ptr<Kernel> dx_, dw_;
};

class WeightAndBias final : public Kernel {
 public:
  WeightAndBias(const reference::ProductSpec& dw, const TensorSpec& dy)
      : Kernel("reference:weight_and_bias"), dw_(reference::product_kernel(dw)) {
    const TensorSpec db = dy.with(Shape{1, dy.shape[1]});
    Candidates sums;
    Reduce::reference({{Reduction::kSum, 1}, {&dy, 1}, {&db, 1}, 1, {}, {}}, sums);
    db_ = sums.all().front().make();
  }
  void run(const Launch& l) const override {
    dw_->run({l.in, l.out, nullptr});
    db_->run({l.in, l.out + 1, nullptr});
  }

 private:
  std::unique_ptr<Kernel> dw_, db_;
};

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
  const reference::ProductSpec s = input_product(p.in[0], p.out[0]);
  candidates.add("reference", [s] { return reference::product_kernel(s); });
}

void LinearBackwardWeight::reference(const Problem<Params>& p, Candidates& candidates) {
  const reference::ProductSpec s = weight_product(p.in[1], p.out[0]);
  candidates.add("reference", [s] { return reference::product_kernel(s); });
}

void LinearBackwardWeightBias::reference(const Problem<Params>& p, Candidates& candidates) {
  const reference::ProductSpec dw = weight_product(p.in[1], p.out[0]);
  candidates.add("reference", [dw, dy = p.in[0]] { return std::make_unique<WeightAndBias>(dw, dy); });
}

void LinearBackward::reference(const Problem<Params>& p, Candidates& candidates) {
  const reference::ProductSpec dx = input_product(p.in[0], p.out[0]), dw = weight_product(p.in[1], p.out[1]);
  candidates.add("reference", [dx, dw] { return std::make_unique<BothProducts>(dx, dw); });
}

double LinearForward::flops(const Problem<Params>& p) { return products(p.in[0].shape, p.in[1].shape); }
double LinearBackwardInput::flops(const Problem<Params>& p) { return products(p.in[0].shape, p.in[1].shape); }
double LinearBackwardWeight::flops(const Problem<Params>& p) { return products(p.in[1].shape, p.out[0].shape); }
double LinearBackwardWeightBias::flops(const Problem<Params>& p) { return products(p.in[1].shape, p.out[0].shape); }
double LinearBackward::flops(const Problem<Params>& p) { return 2 * products(p.in[1].shape, p.out[1].shape); }

}  // namespace plumb
