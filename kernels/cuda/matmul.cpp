#include "kernels/matmul.h"

#include "kernels/cuda/gemm.h"

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

}  // namespace

void Matmul::cuda(const Problem<Params>& p, Candidates& candidates) {
  const DType dtype = p.out[0].dtype;
  if (dtype == DType::kF16) return;
  candidates.add("gemm", [g = plan(p), dtype, device = p.device] {
    return cuda::gemm_kernel("plumb:matmul", device, dtype, g, 0, 1);
  });
}

}  // namespace plumb
