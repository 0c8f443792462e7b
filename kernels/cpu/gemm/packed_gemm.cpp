#include "kernels/cpu/gemm/packed_gemm.h"

#include "kernels/cpu/gemm/batch_offset.h"
#include "kernels/cpu/gemm/panels.h"

namespace plumb::cpu {

std::unique_ptr<Kernel> packed_gemm_kernel(const Product& product, bool relu) {
  if (product.dtype != DType::kF32) return nullptr;
  Product p = product;
  if (!p.transpose_a && p.batch_b.numel() == 1) {  // one product of all rows
    p.m *= p.batch_a.numel();
    p.batch_a = p.batch_b = p.batch_c = {};
  }
  const int64_t batch = p.batch_c.numel();
  const PackedProducts products(batch, p.m, p.n, p.k, p.threads);
  const BatchOffsets at(p);
  auto kernel = make_kernel("plumb:packed_gemm", [=](const Launch& l) {
    const auto in = [&](size_t i) { return static_cast<const float*>(l.in[i]); };
    products.run(static_cast<float*>(l.workspace), [&](int64_t i, const PackedProduct& one, float* memory) {
      const auto number = static_cast<size_t>(i);
      const float *a = in(0) + at.a[number], *b = in(1) + at.b[number];
      const MatrixPanels<kBlockRows> rows({a, p.transpose_a ? p.m : 1, p.transpose_a ? 1 : p.k}, p.m);
      const MatrixPanels<kBlockColumns> columns({b, p.transpose_b ? 1 : p.n, p.transpose_b ? p.k : 1}, p.n);
      one.run(rows, columns, {static_cast<float*>(l.out[0]) + i * p.m * p.n, {p.n}, p.bias ? in(2) : nullptr, relu},
              memory);
    });
  });
  kernel->info().workspace_bytes = static_cast<size_t>(products.floats()) * sizeof(float);
  return kernel;
}

}  // namespace plumb::cpu
