// Where the matrices of a batched product are, whose operands may be broadcast.
#pragma once

#include <vector>

#include "kernels/cpu/gemm/product.h"

namespace plumb::cpu {

/// The offset of the i-th matrix of an operand whose batch may be broadcast to that of c.
inline int64_t batch_offset(int64_t i, const Shape& c, const Shape& batch, int64_t matrix) {
  int64_t at = 0, step = matrix;
  for (int d = c.rank() - 1; d >= 0; --d) {
    if (batch[d] != 1) at += i % c[d] * step;
    step *= batch[d];
    i /= c[d];
  }
  return at;
}

/// Of both operands, in elements, for each matrix of c.
struct BatchOffsets {
  std::vector<int64_t> a, b;
  explicit BatchOffsets(const Product& p) {
    for (int64_t i = 0; i < p.batch_c.numel(); ++i) {
      a.push_back(batch_offset(i, p.batch_c, p.batch_a, p.m * p.k));
      b.push_back(batch_offset(i, p.batch_c, p.batch_b, p.k * p.n));
    }
  }
};

}  // namespace plumb::cpu
