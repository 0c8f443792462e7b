#include "kernels/cpu/gemm/packed_gemm.h"

#include <vector>

#include "kernels/cpu/gemm/panels.h"

namespace plumb::cpu {
namespace {

// The offset of the i-th matrix of an operand whose batch may be broadcast to that of c.
int64_t offset_of(int64_t i, const Shape& c, const Shape& batch, int64_t matrix) {
  int64_t at = 0, step = matrix;
  for (int d = c.rank() - 1; d >= 0; --d) {
    if (batch[d] != 1) at += i % c[d] * step;
    step *= batch[d];
    i /= c[d];
  }
  return at;
}

}  // namespace

std::unique_ptr<Kernel> packed_gemm_kernel(const Product& product, bool relu) {
  if (product.dtype != DType::kF32) return nullptr;
  Product p = product;
  if (!p.transpose_a && p.batch_b.numel() == 1) {  // one product of all rows
    p.m *= p.batch_a.numel();
    p.batch_a = p.batch_b = p.batch_c = {};
  }
  const int64_t batch = p.batch_c.numel();
  const PackedProducts products(batch, p.m, p.n, p.k, p.threads);
  std::vector<int64_t> at_a, at_b;
  for (int64_t i = 0; i < batch; ++i) {
    at_a.push_back(offset_of(i, p.batch_c, p.batch_a, p.m * p.k));
    at_b.push_back(offset_of(i, p.batch_c, p.batch_b, p.k * p.n));
  }
  auto kernel = make_kernel("plumb:packed_gemm", [=](const Launch& l) {
    const auto in = [&](size_t i) { return static_cast<const float*>(l.in[i]); };
    products.run(static_cast<float*>(l.workspace), [&](int64_t i, const PackedProduct& one, float* memory) {
      const auto number = static_cast<size_t>(i);
      const float *a = in(0) + at_a[number], *b = in(1) + at_b[number];
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
