// The three products of linear. Which formulation wins depends on shape and machine: all are candidates. Their order
// is the heuristic's, and comes from measurements (docs/measured.md).
#include "kernels/linear.h"

#include "kernels/cpu/gemm/product.h"
#include "kernels/cpu/gemm/skinny_gemm.h"
#include "kernels/cpu/wrappers/relu_epilogue.h"

namespace plumb {
namespace {

using cpu::InnerProduct;
using cpu::Product;

void offer(const Product& product, InnerProduct which, const TensorSpec& x, const TensorSpec& w, const TensorSpec& y,
           Candidates& candidates, Activation activation = Activation::kNone) {
  if (!product.fits()) return;
  const auto add = [&](Provider provider, const char* algorithm, auto make) {
    candidates.add(provider, algorithm, [=] {
      auto kernel = cpu::declining(make);
      return activation == Activation::kRelu ? cpu::relu_epilogue(std::move(kernel), y) : std::move(kernel);
    });
  };
  const bool few = which != InnerProduct::kBackwardWeight && cpu::is_passage(x.shape[0], w);
  const auto add_skinny = [&] {
    add(Provider::kPlumbline, "skinny_gemm", [=] { return cpu::skinny_linear(which, x, w, product.bias); });
  };
  const auto add_matmul = [&] { add(Provider::kOneDnn, "matmul", [=] { return cpu::matmul_kernel(product); }); };
  if (few) add_skinny();
  if (which == InnerProduct::kForward) add_matmul();
  add(Provider::kOneDnn, "gemm", [=] { return cpu::gemm_kernel(product); });
  add(Provider::kOneDnn, "gemm_columns", [=] { return cpu::gemm_columns_kernel(product); });
  if (which != InnerProduct::kForward) add_matmul();
  add(Provider::kOneDnn, "inner_product",
      [=] { return cpu::inner_product_kernel(which, x, w, y, product.bias, product.math); });
  if (!few) add_skinny();
}

}  // namespace

void LinearForward::cpu(const Problem<Params>& p, Candidates& candidates) {
  const TensorSpec &x = p.in[0], &w = p.in[1], &y = p.out[0];
  Product product{
      .dtype = y.dtype, .batch_a = {}, .batch_b = {}, .batch_c = {}, .m = y.shape[0], .n = y.shape[1], .k = x.shape[1]};
  product.transpose_b = true;
  product.bias = p.in.size() == 3;
  product.math = p.math;
  product.threads = p.threads;
  offer(product, InnerProduct::kForward, x, w, y, candidates, p.params.activation);
}

void LinearBackwardInput::cpu(const Problem<Params>& p, Candidates& candidates) {
  const TensorSpec &y = p.in[0], &w = p.in[1], &x = p.out[0];
  Product product{
      .dtype = x.dtype, .batch_a = {}, .batch_b = {}, .batch_c = {}, .m = x.shape[0], .n = x.shape[1], .k = y.shape[1]};
  product.math = p.math;
  product.threads = p.threads;
  offer(product, InnerProduct::kBackwardInput, x, w, y, candidates);
}

void LinearBackwardWeight::cpu(const Problem<Params>& p, Candidates& candidates) {
  const TensorSpec &y = p.in[0], &x = p.in[1], &w = p.out[0];
  Product product{
      .dtype = w.dtype, .batch_a = {}, .batch_b = {}, .batch_c = {}, .m = w.shape[0], .n = w.shape[1], .k = x.shape[0]};
  product.transpose_a = true;
  product.math = p.math;
  product.threads = p.threads;
  offer(product, InnerProduct::kBackwardWeight, x, w, y, candidates);
}

void LinearBackward::cpu(const Problem<Params>& p, Candidates& candidates) {
  const TensorSpec &x = p.in[1], &w = p.in[2];
  candidates.add("skinny_gemm", [=] { return cpu::skinny_linear_backward(x, w, true); });
  candidates.add("skinny_gemm_apart", [=] { return cpu::skinny_linear_backward(x, w, false); });
}

}  // namespace plumb
