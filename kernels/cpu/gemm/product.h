// The ways in which oneDNN computes a matrix product, for matmul and linear.
#pragma once

#include "kernels/cpu/onednn/dnnl.h"

namespace plumb::cpu {

/// c = a b (+ bias) for row-major tensors, viewed as matrices that may be transposed.
struct Product {
  DType dtype;
  Shape batch_a, batch_b, batch_c;  ///< leading extents, all of the same rank; 1 broadcasts
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;
  bool bias = false;  ///< a third input of n elements
  MathMode math = MathMode::kStrict;
  int threads = 1;

  bool has_elements() const { return m && n && k && batch_c.numel(); }
  bool fits() const { return dnnl_has(dtype) && is_floating(dtype) && has_elements(); }  ///< oneDNN
};

/// oneDNN's matmul primitive on unpacked tensors. Null if it has only plain loops for them.
std::unique_ptr<Kernel> matmul_kernel(const Product& p);
/// dnnl_sgemm: f32, one batch, no bias; null otherwise.
std::unique_ptr<Kernel> gemm_kernel(const Product& p);
/// The same, but each thread calls it for its own columns. oneDNN itself also splits the rows, and then each thread
/// copies all of b: an eighth of the time with few rows and a large b. Null if there is nothing to split.
std::unique_ptr<Kernel> gemm_columns_kernel(const Product& p);

/// A fully connected layer's products: y = x w^T, dx = dy w, dw = dy^T x.
enum class InnerProduct { kForward, kBackwardInput, kBackwardWeight };
/// One of them, of so many rows and w (outputs, inputs, ...); bias, math and threads are left to be said.
Product layer_product(InnerProduct which, int64_t rows, const TensorSpec& w);
/// The same by the inner_product primitive, which chooses the format of the weights.
std::unique_ptr<Kernel> inner_product_kernel(InnerProduct which, const TensorSpec& x, const TensorSpec& w,
                                             const TensorSpec& y, bool bias, MathMode math);

}  // namespace plumb::cpu
