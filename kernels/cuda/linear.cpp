// The products of a linear layer: x is (N, IN), w (OUT, IN), y (N, OUT).
#include "kernels/linear.h"

#include "kernels/cuda/gemm.h"

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

}  // namespace

// Rows are outputs, so that each has one bias.
void LinearForward::cuda(const Problem<Params>& p, Candidates& c) {
  offer("plumb:linear_forward", p, by_rows(p.in[1]), by_rows(p.in[0]), 1, p.in[1].shape[0],
        p.params.activation == Activation::kRelu, {1, 0, p.in.size() == 3 ? 2 : -1}, c);
}

void LinearBackwardInput::cuda(const Problem<Params>& p, Candidates& c) {
  offer("plumb:linear_backward_input", p, by_rows(p.in[0]), by_columns(p.in[1]), p.in[1].shape[1], 1, false, {0, 1}, c);
}

void LinearBackwardWeight::cuda(const Problem<Params>& p, Candidates& c) {
  offer("plumb:linear_backward_weight", p, by_columns(p.in[0]), by_columns(p.in[1]), p.in[1].shape[1], 1, false, {0, 1},
        c);
}

}  // namespace plumb
