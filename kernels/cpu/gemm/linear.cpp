// The three products of linear. The fastest method depends on shape and machine, so all are candidates. Their order is
// the heuristic's, from measurements (docs/measured.md).
#include "kernels/linear.h"

#include "kernels/cpu/gemm/amx_block.h"
#include "kernels/cpu/gemm/f64_product.h"
#include "kernels/cpu/gemm/packed_gemm.h"
#include "kernels/cpu/gemm/product.h"
#include "kernels/cpu/gemm/skinny_gemm.h"
#include "kernels/cpu/gemm/streamed_gemm.h"
#include "kernels/cpu/offer.h"
#include "kernels/cpu/wrappers/relu_epilogue.h"
#include "kernels/cpu/wrappers/via_f32.h"

namespace plumb {
namespace {

using cpu::InnerProduct;
using cpu::Place;
using cpu::Product;

// Whether, with so many rows, our kernel streams w faster than oneDNN's.
bool is_skinny(InnerProduct which, int64_t rows, const TensorSpec& w) {
  switch (which) {
    case InnerProduct::kForward: return cpu::is_passage(rows, w);
    case InnerProduct::kBackwardInput: return cpu::is_passage(rows, w) && w.bytes() >= detail::kLeastJointBytes;
    case InnerProduct::kBackwardWeight: return cpu::is_passage(rows, w) && rows <= detail::kMostJointRows;
  }
  return false;
}

// By AMX our products are ahead of oneDNN 2.x in gradients.
bool is_first_by_amx(InnerProduct which, const Product& p) {
  return p.dtype == DType::kBf16 && which != InnerProduct::kForward && cpu::has_amx();
}

template <class Params>
void offer(const Problem<Params>& p, InnerProduct which, const TensorSpec& x, const TensorSpec& w, const TensorSpec& y,
           Candidates& candidates, Activation activation = Activation::kNone) {
  Product product = cpu::layer_product(which, x.shape[0], w);
  product.bias = p.in.size() == 3, product.math = p.math, product.threads = p.threads;
  if (product.dtype == DType::kF64) {
    candidates.add("gemm",
                   [product, relu = activation == Activation::kRelu] { return cpu::f64_gemm_kernel(product, relu); });
  }
  if (!product.fits()) return;
  const auto made = [&](auto make) -> Candidates::Make {
    return [=] {
      auto kernel = cpu::declining(make);
      return activation == Activation::kRelu ? cpu::relu_epilogue(std::move(kernel), y) : std::move(kernel);
    };
  };
  const bool is_forward = which == InnerProduct::kForward;
  const bool relu = activation == Activation::kRelu;
  const auto streamed = [=, bias = product.bias] { return cpu::streamed_gemm_kernel(x, w, bias, relu); };
  cpu::offer_in_order(
      candidates,
      {{"skinny_gemm", Provider::kPlumbline, made([=] { return cpu::skinny_linear(which, x, w, product.bias); }),
        is_skinny(which, x.shape[0], w) ? Place::kFirst : Place::kLast},
       {"gemm", Provider::kOneDnn, made([=] { return cpu::gemm_kernel(product); })},
       {"gemm_columns", Provider::kOneDnn, made([=] { return cpu::gemm_columns_kernel(product); })},
       {"matmul", Provider::kOneDnn, made([=] { return cpu::matmul_kernel(product); }),
        is_forward ? Place::kFirst : Place::kListed},
       {"inner_product", Provider::kOneDnn,
        made([=] { return cpu::inner_product_kernel(which, x, w, y, product.bias, product.math); })},
       {"packed_gemm", Provider::kPlumbline, [=] { return cpu::packed_gemm_kernel(product, relu); },
        is_first_by_amx(which, product) ? Place::kFirst : Place::kLast},
       {"streamed_gemm", Provider::kPlumbline, is_forward ? Candidates::Make(streamed) : nullptr, Place::kLast}});
}

}  // namespace

void LinearForward::cpu(const Problem<Params>& p, Candidates& candidates) {
  cpu::offer_also_via_f32(p, candidates, 1, [](const Problem<Params>& q, Candidates& to) {
    offer(q, InnerProduct::kForward, q.in[0], q.in[1], q.out[0], to, q.params.activation);
  });
}

void LinearBackwardInput::cpu(const Problem<Params>& p, Candidates& candidates) {
  cpu::offer_also_via_f32(p, candidates, 1, [](const Problem<Params>& q, Candidates& to) {
    offer(q, InnerProduct::kBackwardInput, q.out[0], q.in[1], q.in[0], to);
  });
}

void LinearBackwardWeight::cpu(const Problem<Params>& p, Candidates& candidates) {
  cpu::offer_also_via_f32(p, candidates, -1, [](const Problem<Params>& q, Candidates& to) {
    offer(q, InnerProduct::kBackwardWeight, q.in[1], q.out[0], q.in[0], to);
  });
}

void LinearBackward::cpu(const Problem<Params>& p, Candidates& candidates) {
  candidates.add("skinny_gemm", [x = p.in[1], w = p.in[2]] { return cpu::skinny_linear_backward(x, w); });
}

}  // namespace plumb
