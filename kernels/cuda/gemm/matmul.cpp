#include "kernels/matmul.h"

#include <limits>
#include <optional>

#include "kernels/cuda/gemm/gemm.h"
#include "kernels/cuda/vendor/offers.h"

namespace plumb {
namespace {

using cuda::Axis;
using cuda::Gemm;

Gemm plan(const Problem<MatmulParams>& p) {
  const Shape &a = p.in[0].shape, &b = p.in[1].shape, &y = p.out[0].shape;
  const int64_t m = y[-2], n = y[-1], k = p.params.transpose_a ? a[-2] : a[-1];
  Gemm g;
  g.a.is_depth_first = p.params.transpose_a == 0;
  g.a.row = Axis({m, g.a.is_depth_first ? k : 1});
  g.a.depth = Axis({k, g.a.is_depth_first ? 1 : m});
  g.b.is_depth_first = p.params.transpose_b != 0;
  g.b.row = Axis({n, g.b.is_depth_first ? k : 1});
  g.b.depth = Axis({k, g.b.is_depth_first ? 1 : n});
  g.row_stride = n;
  g.column_inner = cuda::Divisor(std::max<int64_t>(1, n));
  g.column_stride[0] = 1;
  int64_t of_a = m * k, of_b = k * n, of_y = m * n;
  for (int d = 3; d <= y.rank(); ++d) {  // from the innermost batch dimension on
    const int64_t ea = d <= a.rank() ? a[-d] : 1, eb = d <= b.rank() ? b[-d] : 1;
    g.batches.add(y[-d], ea == 1 ? 0 : of_a, eb == 1 ? 0 : of_b, of_y);
    of_a *= ea, of_b *= eb, of_y *= y[-d];
  }
  return g;
}

// How the matrices of an operand of the product's batches follow one another: by so many elements, by none where it is
// one for all, or, nothing, in another way.
std::optional<int64_t> batch_stride(const Shape& m, const Shape& y) {
  int64_t own = 1, all = 1;
  for (int d = 3; d <= y.rank(); ++d) all *= y[-d];
  for (int d = 3; d <= m.rank(); ++d) own *= m[-d];
  if (own == all) return m[-2] * m[-1];
  return own == 1 ? std::optional<int64_t>(0) : std::nullopt;
}

// cuBLASLt sees a row-major matrix as its transpose, and y^T = b^T a^T.
void offer_cublaslt(const Problem<MatmulParams>& p, Candidates& candidates) {
  const Shape &a = p.in[0].shape, &b = p.in[1].shape, &y = p.out[0].shape;
  const auto a_stride = batch_stride(a, y), b_stride = batch_stride(b, y);
  int64_t count = 1;
  for (int d = 3; d <= y.rank(); ++d) count *= y[-d];
  if (!a_stride || !b_stride || count > std::numeric_limits<int32_t>::max()) return;
  cuda::offer_cublaslt({.a = {1, b[-1], b[-2], *b_stride},
                        .b = {0, a[-1], a[-2], *a_stride},
                        .d = {0, y[-1], y[-2], y[-2] * y[-1]},
                        .depth = p.params.transpose_a ? a[-2] : a[-1],
                        .count = count,
                        .transpose_a = p.params.transpose_b != 0,
                        .transpose_b = p.params.transpose_a != 0},
                       p.out[0].dtype, p.math, p.device, candidates);
}

}  // namespace

void Matmul::cuda(const Problem<Params>& p, Candidates& candidates) {
  if (p.out[0].dtype == DType::kF16) return;
  offer_cublaslt(p, candidates);
  cuda::offer_gemm("gemm", "plumb:matmul", p, plan(p), 0, 1, -1, candidates);
}

}  // namespace plumb
