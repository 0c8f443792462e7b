// The products of a linear layer: x is (N, IN), w (OUT, IN), y (N, OUT).
#include "kernels/linear.h"

#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/gemm/relu_mask.h"
#include "kernels/cuda/vendor/offers.h"
#include "kernels/reduce.h"

namespace plumb {
namespace {

using cuda::Axis;
using cuda::Gemm;
using cuda::Operand;

// A row-major matrix, its rows as the rows of an operand and its columns as the depth, or the other way round.
Operand by_rows(const TensorSpec& m) {
  Operand o;
  o.row = Axis({m.shape[0], m.shape[1]});
  o.depth = Axis({m.shape[1], 1});
  o.is_depth_first = true;
  return o;
}
Operand by_columns(const TensorSpec& m) {
  Operand o;
  o.row = Axis({m.shape[1], 1});
  o.depth = Axis({m.shape[0], m.shape[1]});
  return o;
}

// The inputs by their numbers; bias is -1 where there is none.
struct Inputs {
  int a, b, bias = -1;
};
template <class Params>
void offer(const char* name, const Problem<Params>& p, const Operand& a, const Operand& b, int64_t row_stride,
           int64_t column_stride, bool relu, const Inputs& in, Candidates& candidates) {
  const DType dtype = p.out[0].dtype;
  if (dtype == DType::kF16) return;
  Gemm g;
  g.a = a, g.b = b;
  g.row_stride = row_stride;
  g.column_inner = cuda::Divisor(std::max<int64_t>(1, g.columns()));
  g.column_stride[0] = column_stride;
  g.relu = relu;
  candidates.add("gemm",
                 [=, device = p.device] { return cuda::gemm_kernel(name, device, dtype, g, in.a, in.b, in.bias); });
}

// dw with the rows of dy summed in a kernel of its own.
class WeightThenBias final : public Kernel {
 public:
  WeightThenBias(std::unique_ptr<Kernel> dw, std::unique_ptr<Kernel> db)
      : Kernel(dw->info().name + "+sum"), dw_(std::move(dw)), db_(std::move(db)) {
    info().workspace_bytes = std::max(dw_->info().workspace_bytes, db_->info().workspace_bytes);
    info().launches = dw_->info().launches + db_->info().launches;
    info().notes = dw_->info().notes;
  }
  void run(const Launch& l) const override {
    dw_->run({l.in, l.out, l.workspace, l.stream});
    db_->run({l.in, l.out + 1, l.workspace, l.stream});
  }

 private:
  std::unique_ptr<Kernel> dw_, db_;
};

std::unique_ptr<Kernel> sum_of_rows(const TensorSpec& dy, Device device) {
  const TensorSpec db = dy.with(Shape{1, dy.shape[1]});
  Candidates sums;
  Reduce::cuda({{Reduction::kSum, 1}, {&dy, 1}, {&db, 1}, 1, {}, device}, sums);
  return sums.all().front().make();
}

// Each of `products` with something after it, which after(kernel) adds.
template <class After>
void offer_then(const Candidates& products, const char* suffix, const After& after, Candidates& candidates) {
  for (const auto& product : products.all()) {
    const auto both = [make = product.make, after]() -> std::unique_ptr<Kernel> {
      auto kernel = make();
      return kernel ? after(std::move(kernel)) : nullptr;
    };
    candidates.add(product.provider, product.algorithm + suffix, both, product.deterministic);
  }
}

cuda::LtMatrix transposed(size_t input, const TensorSpec& m) { return {input, m.shape[1], m.shape[0]}; }

// cuBLASLt sees a row-major matrix as its transpose, so that y^T = w x^T, dx^T = w^T dy^T and dw^T = x^T dy.
cuda::LtProduct forward_product(std::span<const TensorSpec> in, const TensorSpec& y) {
  return {.a = transposed(1, in[1]),
          .b = transposed(0, in[0]),
          .d = transposed(0, y),
          .depth = in[0].shape[1],
          .transpose_a = true,
          .bias = in.size() == 3 ? 2 : -1};
}
cuda::LtProduct input_product(const TensorSpec& dy, const TensorSpec& w, const TensorSpec& dx) {
  return {.a = transposed(1, w), .b = transposed(0, dy), .d = transposed(0, dx), .depth = dy.shape[1]};
}
cuda::LtProduct weight_product(const TensorSpec& dy, const TensorSpec& x, const TensorSpec& dw) {
  return {
      .a = transposed(1, x), .b = transposed(0, dy), .d = transposed(0, dw), .depth = dy.shape[0], .transpose_b = true};
}

}  // namespace

void LinearForward::cuda(const Problem<Params>& p, Candidates& c) {
  const TensorSpec &x = p.in[0], &w = p.in[1], &y = p.out[0];
  cuda::LtProduct product = forward_product(p.in, y);
  product.relu = p.params.activation == Activation::kRelu;
  cuda::offer_cublaslt(product, y.dtype, p.math, p.device, c);
  // Rows are outputs, so that each has one bias.
  offer("plumb:linear_forward", p, by_rows(w), by_rows(x), 1, w.shape[0], product.relu, {1, 0, product.bias}, c);
}

void LinearForwardMask::cuda(const Problem<Params>& p, Candidates& c) {
  const TensorSpec& y = p.out[0];
  cuda::LtProduct both = forward_product(p.in, y);
  both.gives_mask = true;
  cuda::offer_cublaslt(both, y.dtype, p.math, p.device, c);
  Candidates products;
  const LinearParams relu{Activation::kRelu};
  LinearForward::cuda({relu, p.in, p.out.first(1), p.threads, p.math, p.device}, products);
  const auto mask = [y, device = p.device](auto kernel) { return cuda::then_write_mask(std::move(kernel), y, device); };
  offer_then(products, "_then_mask", mask, c);
}

void LinearBackwardInput::cuda(const Problem<Params>& p, Candidates& c) {
  const TensorSpec &dy = p.in[0], &w = p.in[1], &dx = p.out[0];
  cuda::offer_cublaslt(input_product(dy, w, dx), dx.dtype, p.math, p.device, c);
  offer("plumb:linear_backward_input", p, by_rows(dy), by_columns(w), w.shape[1], 1, false, {0, 1}, c);
}

void LinearBackwardInputMask::cuda(const Problem<Params>& p, Candidates& c) {
  const TensorSpec& dx = p.out[0];
  cuda::LtProduct both = input_product(p.in[0], p.in[1], dx);
  both.mask = 2;
  cuda::offer_cublaslt(both, dx.dtype, p.math, p.device, c);
  Candidates products;
  const LinearParams none;
  LinearBackwardInput::cuda({none, p.in.first(2), p.out, p.threads, p.math, p.device}, products);
  const auto mask = [dx, device = p.device](auto kernel) {
    return cuda::then_apply_mask(std::move(kernel), dx, device);
  };
  offer_then(products, "_then_mask", mask, c);
}

void LinearBackwardWeight::cuda(const Problem<Params>& p, Candidates& c) {
  const TensorSpec &dy = p.in[0], &x = p.in[1], &dw = p.out[0];
  cuda::offer_cublaslt(weight_product(dy, x, dw), dw.dtype, p.math, p.device, c);
  offer("plumb:linear_backward_weight", p, by_columns(dy), by_columns(x), x.shape[1], 1, false, {0, 1}, c);
}

void LinearBackwardWeightBias::cuda(const Problem<Params>& p, Candidates& c) {
  const TensorSpec &dy = p.in[0], &dw = p.out[0];
  cuda::LtProduct both = weight_product(dy, p.in[1], dw);
  both.gives_bias = true;
  cuda::offer_cublaslt(both, dw.dtype, p.math, p.device, c);
  Candidates products;
  LinearBackwardWeight::cuda({p.params, p.in, p.out.first(1), p.threads, p.math, p.device}, products);
  const auto sum = [dy, device = p.device](std::unique_ptr<Kernel> kernel) -> std::unique_ptr<Kernel> {
    return std::make_unique<WeightThenBias>(std::move(kernel), sum_of_rows(dy, device));
  };
  offer_then(products, "_then_sum", sum, c);
}

}  // namespace plumb
