// Matrix products in f64, by Eigen.
#pragma once

#include "kernels/cpu/gemm/product.h"

namespace plumb::cpu {

/// A matrix in memory: rows of `step` numbers each; transposed, these are its columns.
struct F64Matrix {
  const double* data;
  int64_t step;
  bool transposed = false;
};

/// So many rows, columns and depths at once fit into the buffers that Eigen has on the stack: beyond, it would
/// allocate.
inline constexpr int64_t kF64Tile = 120;

/// c += a b, for c of m rows with `step` numbers each and n columns, on the calling thread. Nothing is allocated. The
/// order of each sum depends on m, n and k alone.
void add_f64_product(int64_t m, int64_t n, int64_t k, const F64Matrix& a, const F64Matrix& b, double* c, int64_t step);

/// The kernel of a whole product (+ bias) (relu). Null unless it is of f64 and has elements.
std::unique_ptr<Kernel> f64_gemm_kernel(const Product& p, bool relu = false);

}  // namespace plumb::cpu
