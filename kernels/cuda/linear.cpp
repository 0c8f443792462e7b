// The products of a linear layer: x is (N, IN), w (OUT, IN), y (N, OUT).
#include "kernels/linear.h"

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/vendor/offers.h"

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

void LinearBackwardWeight::cuda(const Problem<Params>& p, Candidates& c) {
  const TensorSpec &dy = p.in[0], &x = p.in[1], &dw = p.out[0];
  cuda::offer_cublaslt({.a = transposed(1, x),
                        .b = transposed(0, dy),
                        .d = transposed(0, dw),
                        .depth = dy.shape[0],
                        .transpose_b = true},
                       dw.dtype, p.math, p.device, c);
  offer("plumb:linear_backward_weight", p, by_columns(dy), by_columns(x), x.shape[1], 1, false, {0, 1}, c);
}

}  // namespace plumb
