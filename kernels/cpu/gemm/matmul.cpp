#include "kernels/matmul.h"

#include "kernels/cpu/gemm/f64_product.h"
#include "kernels/cpu/gemm/packed_gemm.h"
#include "kernels/cpu/gemm/product.h"
#include "kernels/cpu/offer.h"
#include "kernels/cpu/wrappers/via_f32.h"

namespace plumb {
namespace {

Shape batch_of(const Shape& s) { return Shape(s.extents().first(static_cast<size_t>(s.rank() - 2))); }

void offer(const Problem<MatmulParams>& p, Candidates& candidates) {
  const Shape &a = p.in[0].shape, &b = p.in[1].shape, &y = p.out[0].shape;
  cpu::Product product{.dtype = p.out[0].dtype,
                       .batch_a = batch_of(a),
                       .batch_b = batch_of(b),
                       .batch_c = batch_of(y),
                       .m = y[-2],
                       .n = y[-1],
                       .k = p.params.transpose_a ? a[-2] : a[-1]};
  product.transpose_a = p.params.transpose_a != 0;
  product.transpose_b = p.params.transpose_b != 0;
  product.math = p.math;
  product.threads = p.threads;
  if (product.dtype == DType::kF64) {
    candidates.add("gemm", [product] { return cpu::f64_gemm_kernel(product); });
  }
  if (!product.fits()) return;
  const auto made = [product](std::unique_ptr<Kernel> (*make)(const cpu::Product&)) -> Candidates::Make {
    return [product, make] { return cpu::declining([&] { return make(product); }); };
  };
  // The heuristic's order, as in linear.cpp.
  cpu::offer_in_order(candidates, {{"gemm", Provider::kOneDnn, made(cpu::gemm_kernel)},
                                   {"gemm_columns", Provider::kOneDnn, made(cpu::gemm_columns_kernel)},
                                   {"matmul", Provider::kOneDnn, made(cpu::matmul_kernel),
                                    product.transpose_b ? cpu::Place::kFirst : cpu::Place::kListed},
                                   {"packed_gemm", Provider::kPlumbline,
                                    [product] { return cpu::packed_gemm_kernel(product); }, cpu::Place::kLast}});
}

}  // namespace

void Matmul::cpu(const Problem<Params>& p, Candidates& candidates) {
  cpu::offer_also_via_f32(p, candidates, -1, offer);
}

}  // namespace plumb
