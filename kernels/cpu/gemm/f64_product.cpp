#include "kernels/cpu/gemm/f64_product.h"

#define EIGEN_DONT_PARALLELIZE  // threads are shared out here
#include <Eigen/Core>
#include <algorithm>

#include "kernels/cpu/gemm/batch_offset.h"
#include "kernels/cpu/parallel.h"

namespace plumb::cpu {
namespace {

using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Step = Eigen::OuterStride<>;
using In = Eigen::Map<const Rows, 0, Step>;

// c += op(a) op(b), op(a) being m x k.
template <bool kTransposeA, bool kTransposeB>
void add_tile(int64_t m, int64_t n, int64_t k, const double* a, int64_t a_step, const double* b, int64_t b_step,
              double* c, int64_t step) {
  const In left(a, kTransposeA ? k : m, kTransposeA ? m : k, Step(a_step));
  const In right(b, kTransposeB ? n : k, kTransposeB ? k : n, Step(b_step));
  Eigen::Map<Rows, 0, Step> sum(c, m, n, Step(step));
  if constexpr (kTransposeA && kTransposeB) {
    sum.noalias() += left.transpose() * right.transpose();
  } else if constexpr (kTransposeA) {
    sum.noalias() += left.transpose() * right;
  } else if constexpr (kTransposeB) {
    sum.noalias() += left * right.transpose();
  } else {
    sum.noalias() += left * right;
  }
}

// Rows and columns of c that a thread computes at once.
constexpr int64_t kBlock = 2 * kF64Tile;

}  // namespace

void add_f64_product(int64_t m, int64_t n, int64_t k, const F64Matrix& a, const F64Matrix& b, double* c, int64_t step) {
  const auto add = a.transposed ? (b.transposed ? add_tile<true, true> : add_tile<true, false>)
                                : (b.transposed ? add_tile<false, true> : add_tile<false, false>);
  for (int64_t i = 0; i < m; i += kF64Tile) {
    for (int64_t j = 0; j < n; j += kF64Tile) {
      for (int64_t q = 0; q < k; q += kF64Tile) {
        const double* left = a.data + (a.transposed ? q * a.step + i : i * a.step + q);
        const double* right = b.data + (b.transposed ? j * b.step + q : q * b.step + j);
        add(std::min(kF64Tile, m - i), std::min(kF64Tile, n - j), std::min(kF64Tile, k - q), left, a.step, right,
            b.step, c + i * step + j, step);
      }
    }
  }
}

std::unique_ptr<Kernel> f64_gemm_kernel(const Product& p, bool relu) {
  if (p.dtype != DType::kF64 || !p.has_elements()) return nullptr;
  const int64_t row_blocks = ceil_div(p.m, kBlock), column_blocks = ceil_div(p.n, kBlock);
  const int64_t blocks = p.batch_c.numel() * row_blocks * column_blocks;
  const int64_t grain = ceil_div(kGrainBytes, 8 * std::min(p.n, kBlock) * std::max(std::min(p.m, kBlock), p.k));
  const BatchOffsets at(p);
  return make_kernel("plumb:gemm:eigen", [=](const Launch& l) {
    const auto in = [&](size_t i) { return static_cast<const double*>(l.in[i]); };
    parallel_for(blocks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const int64_t batch = block / (row_blocks * column_blocks);
        const int64_t i = block / column_blocks % row_blocks * kBlock, j = block % column_blocks * kBlock;
        const int64_t rows = std::min(kBlock, p.m - i), columns = std::min(kBlock, p.n - j);
        const double *a = in(0) + at.a[static_cast<size_t>(batch)], *b = in(1) + at.b[static_cast<size_t>(batch)];
        double* c = static_cast<double*>(l.out[0]) + batch * p.m * p.n + i * p.n + j;
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t s = 0; s < columns; ++s) c[r * p.n + s] = p.bias ? in(2)[j + s] : 0.0;
        }
        add_f64_product(rows, columns, p.k,
                        {a + (p.transpose_a ? i : i * p.k), p.transpose_a ? p.m : p.k, p.transpose_a},
                        {b + (p.transpose_b ? j * p.k : j), p.transpose_b ? p.k : p.n, p.transpose_b}, c, p.n);
        for (int64_t r = 0; relu && r < rows; ++r) {
          for (int64_t s = 0; s < columns; ++s) c[r * p.n + s] = c[r * p.n + s] < 0 ? 0.0 : c[r * p.n + s];
        }
      }
    });
  });
}

}  // namespace plumb::cpu
