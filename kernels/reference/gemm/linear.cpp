#include "kernels/linear.h"

#include "kernels/reduce.h"
#include "kernels/reference/elements.h"
#include "kernels/reference/gemm/product.h"

namespace plumb {
namespace {

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

// The bit of an element in a mask.
struct Bit {
  reference::Index byte;
  int shift;
  explicit Bit(const reference::Index& i) : byte{{i[0], i[1] / 8}}, shift(static_cast<int>(i[1] % 8)) {}
};

class ForwardAndMask final : public Kernel {
 public:
  ForwardAndMask(const reference::ProductSpec& product, const TensorSpec& y, const TensorSpec& mask)
      : Kernel("reference:forward_and_mask"), product_(reference::product_kernel(product)), y_(y), mask_(mask) {}
  void run(const Launch& l) const override {
    product_->run({l.in, l.out, nullptr});
    reference::for_each_index(mask_.shape(), [&](const auto& i) { mask_.store_integer(l.out[1], i, 0); });
    reference::for_each_index(y_.shape(), [&](const auto& i) {
      if (!(y_.load(l.out[0], i) > 0)) return;
      const Bit bit(i);
      mask_.store_integer(l.out[1], bit.byte, mask_.load_integer(l.out[1], bit.byte) | 1 << bit.shift);
    });
  }

 private:
  std::unique_ptr<Kernel> product_;
  reference::Elements y_, mask_;
};

class InputWhereMasked final : public Kernel {
 public:
  InputWhereMasked(const reference::ProductSpec& product, const TensorSpec& dx, const TensorSpec& mask)
      : Kernel("reference:input_where_masked"), product_(reference::product_kernel(product)), dx_(dx), mask_(mask) {}
  void run(const Launch& l) const override {
    product_->run({l.in, l.out, nullptr});
    reference::for_each_index(dx_.shape(), [&](const auto& i) {
      const Bit bit(i);
      if (!(mask_.load_integer(l.in[2], bit.byte) >> bit.shift & 1)) dx_.store(l.out[0], i, 0);
    });
  }

 private:
  std::unique_ptr<Kernel> product_;
  reference::Elements dx_, mask_;
};

}  // namespace

void LinearForward::reference(const Problem<Params>& p, Candidates& candidates) {
  const reference::ProductSpec s = forward_product(p.in, p.out[0], p.params.activation);
  candidates.add(Provider::kReference, "reference", [s] { return reference::product_kernel(s); });
}

void LinearBackwardInput::reference(const Problem<Params>& p, Candidates& candidates) {
  const reference::ProductSpec s = input_product(p.in[0], p.out[0]);
  candidates.add(Provider::kReference, "reference", [s] { return reference::product_kernel(s); });
}

void LinearBackwardWeight::reference(const Problem<Params>& p, Candidates& candidates) {
  const reference::ProductSpec s = weight_product(p.in[1], p.out[0]);
  candidates.add(Provider::kReference, "reference", [s] { return reference::product_kernel(s); });
}

void LinearBackwardWeightBias::reference(const Problem<Params>& p, Candidates& candidates) {
  const reference::ProductSpec dw = weight_product(p.in[1], p.out[0]);
  candidates.add(Provider::kReference, "reference",
                 [dw, dy = p.in[0]] { return std::make_unique<WeightAndBias>(dw, dy); });
}

void LinearForwardMask::reference(const Problem<Params>& p, Candidates& candidates) {
  const reference::ProductSpec product = forward_product(p.in, p.out[0], Activation::kRelu);
  candidates.add(Provider::kReference, "reference", [product, y = p.out[0], mask = p.out[1]] {
    return std::make_unique<ForwardAndMask>(product, y, mask);
  });
}

void LinearBackwardInputMask::reference(const Problem<Params>& p, Candidates& candidates) {
  const reference::ProductSpec product = input_product(p.in[0], p.out[0]);
  candidates.add(Provider::kReference, "reference", [product, dx = p.out[0], mask = p.in[2]] {
    return std::make_unique<InputWhereMasked>(product, dx, mask);
  });
}

void LinearBackward::reference(const Problem<Params>& p, Candidates& candidates) {
  const reference::ProductSpec dx = input_product(p.in[0], p.out[0]), dw = weight_product(p.in[1], p.out[1]);
  candidates.add(Provider::kReference, "reference", [dx, dw] { return std::make_unique<BothProducts>(dx, dw); });
}

double LinearForward::flops(const Problem<Params>& p) { return products(p.in[0].shape, p.in[1].shape); }
double LinearBackwardInput::flops(const Problem<Params>& p) { return products(p.in[0].shape, p.in[1].shape); }
double LinearBackwardWeight::flops(const Problem<Params>& p) { return products(p.in[1].shape, p.out[0].shape); }
double LinearBackwardWeightBias::flops(const Problem<Params>& p) { return products(p.in[1].shape, p.out[0].shape); }
double LinearForwardMask::flops(const Problem<Params>& p) { return products(p.in[0].shape, p.in[1].shape); }
double LinearBackwardInputMask::flops(const Problem<Params>& p) { return products(p.in[0].shape, p.in[1].shape); }
double LinearBackward::flops(const Problem<Params>& p) { return 2 * products(p.in[1].shape, p.out[1].shape); }

}  // namespace plumb
