// One matrix product by Eigen in f64, or in the tensors' own f32 accumulated in f64: the oracle of matmul and linear.
#pragma once

#include "dispatch/kernel.h"
#include "kernels/activation.h"

namespace plumb::reference {

/// c (m, n) = a b (+ bias) (relu) for row-major memory; batches by their offsets in elements.
struct ProductSpec {
  DType dtype;
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false, bias = false;
  Activation activation = Activation::kNone;
  std::vector<int64_t> a_offsets{0}, b_offsets{0};  ///< of each batch
};
std::unique_ptr<Kernel> product_kernel(const ProductSpec& spec);

}  // namespace plumb::reference
