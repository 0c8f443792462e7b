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

Gemm gemm_of(const Operand& a, const Operand& b, int64_t row_stride, int64_t column_stride, bool relu) {
  Gemm g;
  g.a = a, g.b = b;
  g.row_stride = row_stride;
  g.column_inner = cuda::Divisor(std::max<int64_t>(1, g.columns()));
  g.column_stride[0] = column_stride;
  g.relu = relu;
  return g;
}

template <class Params>
void offer(const char* name, const Problem<Params>& p, const Operand& a, const Operand& b, int64_t row_stride,
           int64_t column_stride, int of_a, int of_b, Candidates& candidates) {
  cuda::offer_gemm("gemm", name, p, gemm_of(a, b, row_stride, column_stride, false), of_a, of_b, -1, candidates);
}

std::unique_ptr<Kernel> sum_of_rows(const TensorSpec& dy, Device device) {
  const TensorSpec db = dy.with(Shape{1, dy.shape[1]});
  Candidates sums;
  Reduce::cuda({{Reduction::kSum, 1}, {&dy, 1}, {&db, 1}, 1, {}, device}, sums);
  return sums.all().front().make();
}

// Each of `products` with the kernel after it that make_after makes, whose outputs are those from number `first_output`
// on: "_then_mask" by name, "+mask" in its kernels'.
void offer_then(const Candidates& products, const std::string& what, size_t first_output,
                const Candidates::Make& make_after, Candidates& candidates) {
  candidates.add_changed(products, "_then_" + what, [=](std::unique_ptr<Kernel> product) {
    auto after = make_after();
    const size_t workspace = std::max(product->info().workspace_bytes, after->info().workspace_bytes);
    const int launches = product->info().launches + after->info().launches;
    auto run = [after = std::move(after), first_output](const Kernel& first, const Launch& l) {
      first.run(l);
      after->run({l.in, l.out + first_output, l.workspace, l.stream});
    };
    auto pair = wrap_kernel(std::move(product), "", "+" + what, std::move(run));
    pair->info().workspace_bytes = workspace, pair->info().launches = launches;
    return pair;
  });
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

// y is of bf16, with a bias: cuBLASLt's product of f32 sums, columns one after another as `end` reads them, and that.
// Of few outputs its own epilogues take many times as long, for such a product can be split and they cannot.
void offer_then_end(const Problem<LinearParams>& p, const Gemm& end, Candidates& candidates) {
  const TensorSpec &x = p.in[0], &w = p.in[1], &y = p.out[0];
  const cuda::LtProduct product{.a = transposed(0, x),
                                .b = transposed(1, w),
                                .d = {0, y.shape[0], y.shape[1]},
                                .depth = x.shape[1],
                                .transpose_a = true,
                                .is_d_f32 = true};
  const size_t sums = plumb::detail::aligned(static_cast<size_t>(y.numel()) * sizeof(float));
  Candidates products;
  cuda::offer_cublaslt(product, y.dtype, p.math, p.device, products);
  const auto with_end = [=, device = p.device, dtype = y.dtype](std::unique_ptr<Kernel> kernel) {
    const size_t workspace = sums + kernel->info().workspace_bytes;
    auto run = [sums, ending = cuda::gemm_ending("", device, dtype, end, 2)](const Kernel& first, const Launch& l) {
      void* const out = l.workspace;
      first.run({l.in, &out, static_cast<char*>(l.workspace) + sums, l.stream});
      ending->run(l);
    };
    auto pair = wrap_kernel(std::move(kernel), "", "+bias", std::move(run));
    pair->info().workspace_bytes = workspace, pair->info().launches += 1;
    return pair;
  };
  candidates.add_changed(products, "_then_bias", with_end);
}

}  // namespace

void LinearForward::cuda(const Problem<Params>& p, Candidates& c) {
  const TensorSpec &x = p.in[0], &w = p.in[1], &y = p.out[0];
  cuda::LtProduct product = forward_product(p.in, y);
  product.relu = p.params.activation == Activation::kRelu;
  cuda::offer_cublaslt(product, y.dtype, p.math, p.device, c);
  // Rows are outputs, so that each has one bias.
  const Gemm own = gemm_of(by_rows(w), by_rows(x), 1, w.shape[0], product.relu);
  if (y.dtype == DType::kBf16 && product.bias >= 0) offer_then_end(p, own, c);
  cuda::offer_gemm("gemm", "plumb:linear_forward", p, own, 1, 0, product.bias, c);
}

void LinearForwardMask::cuda(const Problem<Params>& p, Candidates& c) {
  const TensorSpec& y = p.out[0];
  cuda::LtProduct both = forward_product(p.in, y);
  both.gives_mask = true;
  cuda::offer_cublaslt(both, y.dtype, p.math, p.device, c);
  Candidates products;
  const LinearParams relu{Activation::kRelu};
  LinearForward::cuda({relu, p.in, p.out.first(1), p.threads, p.math, p.device}, products);
  offer_then(
      products, "mask", 0, [y, device = p.device] { return cuda::relu_mask(y, device); }, c);
}

void LinearBackwardInput::cuda(const Problem<Params>& p, Candidates& c) {
  const TensorSpec &dy = p.in[0], &w = p.in[1], &dx = p.out[0];
  cuda::offer_cublaslt(input_product(dy, w, dx), dx.dtype, p.math, p.device, c);
  offer("plumb:linear_backward_input", p, by_rows(dy), by_columns(w), w.shape[1], 1, 0, 1, c);
}

void LinearBackwardInputMask::cuda(const Problem<Params>& p, Candidates& c) {
  const TensorSpec& dx = p.out[0];
  cuda::LtProduct both = input_product(p.in[0], p.in[1], dx);
  both.mask = 2;
  cuda::offer_cublaslt(both, dx.dtype, p.math, p.device, c);
  Candidates products;
  const LinearParams none;
  LinearBackwardInput::cuda({none, p.in.first(2), p.out, p.threads, p.math, p.device}, products);
  offer_then(
      products, "mask", 0, [dx, device = p.device] { return cuda::apply_mask(dx, device); }, c);
}

void LinearBackwardWeight::cuda(const Problem<Params>& p, Candidates& c) {
  const TensorSpec &dy = p.in[0], &x = p.in[1], &dw = p.out[0];
  cuda::offer_cublaslt(weight_product(dy, x, dw), dw.dtype, p.math, p.device, c);
  offer("plumb:linear_backward_weight", p, by_columns(dy), by_columns(x), x.shape[1], 1, 0, 1, c);
}

void LinearBackwardWeightBias::cuda(const Problem<Params>& p, Candidates& c) {
  const TensorSpec &dy = p.in[0], &dw = p.out[0];
  cuda::LtProduct both = weight_product(dy, p.in[1], dw);
  both.gives_bias = true;
  cuda::offer_cublaslt(both, dw.dtype, p.math, p.device, c);
  Candidates products;
  LinearBackwardWeight::cuda({p.params, p.in, p.out.first(1), p.threads, p.math, p.device}, products);
  offer_then(
      products, "sum", 1, [dy, device = p.device] { return sum_of_rows(dy, device); }, c);
}

}  // namespace plumb
