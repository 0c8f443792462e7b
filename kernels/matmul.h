// Matrix products.
#pragma once

#include "../dispatch/kernel.h"

namespace plumb {

struct MatmulParams {
  int32_t transpose_a = 0;
  int32_t transpose_b = 0;
};

/// y (..., M, N) from {a, b}: a is (..., M, K), or (..., K, M) if transposed; b is (..., K, N), or (..., N, K) if
/// transposed. Leading dimensions are batches; an extent of 1 broadcasts. Row-major.
struct Matmul {
  static constexpr char kName[] = "matmul";
  using Params = MatmulParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
  static double flops(const Problem<Params>&);
};

}  // namespace plumb
