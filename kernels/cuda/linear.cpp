// The products of a linear layer: x is (N, IN), w (OUT, IN), y (N, OUT).
#include "kernels/linear.h"

#include "kernels/cuda/gemm.h"
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

cuda::LtMatrix transposed(size_t input, const TensorSpec& m) { return {input, m.shape[1], m.shape[0]}; }

}  // namespace

// cuBLASLt sees a row-major matrix as its transpose, so that y^T = w x^T, dx^T = w^T dy^T and dw^T = x^T dy.
void LinearForward::cuda(const Problem<Params>& p, Candidates& c) {
  const TensorSpec &x = p.in[0], &w = p.in[1], &y = p.out[0];
  const bool relu = p.params.activation == Activation::kRelu;
  const int bias = p.in.size() == 3 ? 2 : -1;
  cuda::offer_cublaslt({.a = transposed(1, w),
                        .b = transposed(0, x),
                        .d = transposed(0, y),
                        .depth = x.shape[1],
                        .transpose_a = true,
                        .relu = relu,
                        .bias = bias},
                       y.dtype, p.math, p.device, c);
  // Rows are outputs, so that each has one bias.
  offer("plumb:linear_forward", p, by_rows(w), by_rows(x), 1, w.shape[0], relu, {1, 0, bias}, c);
}

void LinearBackwardInput::cuda(const Problem<Params>& p, Candidates& c) {
  const TensorSpec &dy = p.in[0], &w = p.in[1], &dx = p.out[0];
  cuda::offer_cublaslt({.a = transposed(1, w), .b = transposed(0, dy), .d = transposed(0, dx), .depth = dy.shape[1]},
                       dx.dtype, p.math, p.device, c);
  offer("plumb:linear_backward_input", p, by_rows(dy), by_columns(w), w.shape[1], 1, false, {0, 1}, c);
}

namespace {

cuda::LtProduct weight_product(const TensorSpec& dy, const TensorSpec& x, const TensorSpec& dw) {
  return {
      .a = transposed(1, x), .b = transposed(0, dy), .d = transposed(0, dw), .depth = dy.shape[0], .transpose_b = true};
}

}  // namespace

void LinearBackwardWeight::cuda(const Problem<Params>& p, Candidates& c) {
  const TensorSpec &dy = p.in[0], &x = p.in[1], &dw = p.out[0];
  cuda::offer_cublaslt(weight_product(dy, x, dw), dw.dtype, p.math, p.device, c);
  offer("plumb:linear_backward_weight", p, by_columns(dy), by_columns(x), x.shape[1], 1, false, {0, 1}, c);
}

void LinearBackwardWeightBias::cuda(const Problem<Params>& p, Candidates& c) {
  const TensorSpec &dy = p.in[0], &x = p.in[1], &dw = p.out[0];
  cuda::LtProduct both = weight_product(dy, x, dw);
  both.gives_bias = true;
  cuda::offer_cublaslt(both, dw.dtype, p.math, p.device, c);
  Candidates products;
  LinearBackwardWeight::cuda({p.params, p.in, p.out.first(1), p.threads, p.math, p.device}, products);
  for (const auto& product : products.all()) {
    c.add(product.algorithm + "_then_sum", [make = product.make, dy, device = p.device]() -> std::unique_ptr<Kernel> {
      auto kernel = make();
      if (!kernel) return nullptr;
      return std::make_unique<WeightThenBias>(std::move(kernel), sum_of_rows(dy, device));
    });
  }
}

}  // namespace plumb
