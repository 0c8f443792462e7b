#include "ops/matmul.h"

#include <algorithm>

#include "dispatch/gate.h"
#include "ops/reduce.h"
#include "ops/reshape.h"

namespace plumb {
namespace {

// oneDNN requires operands of one rank: this adds missing batch dimensions with extent 1, which costs nothing.
Tensor with_rank(const Tensor& x, int rank) {
  if (x.rank() == rank) return x;
  int64_t e[kMaxRank];
  for (int d = 0; d < rank; ++d) e[d] = d < rank - x.rank() ? 1 : x.shape()[d - (rank - x.rank())];
  return reshape(x, Shape(std::span<const int64_t>(e, static_cast<size_t>(rank))));
}

}  // namespace

TensorSpec matmul_output(const MatmulParams& p, const TensorSpec& a, const TensorSpec& b) {
  PLUMB_CHECK(a.rank() >= 2 && b.rank() >= 2,
              "matmul: a {} and b {} must have at least two dimensions; reshape vectors to matrices", a.shape, b.shape);
  PLUMB_CHECK(a.layout == Layout::kNchw && b.layout == Layout::kNchw,
              "matmul: a is {} and b is {}; convert them to row-major with to(nchw)", a, b);
  PLUMB_CHECK(is_floating(a.dtype) && a.dtype == b.dtype,
              "matmul: a is {} and b is {}; both must be of one floating dtype", a.dtype, b.dtype);
  const int64_t m = p.transpose_a ? a.shape[-1] : a.shape[-2], ka = p.transpose_a ? a.shape[-2] : a.shape[-1];
  const int64_t n = p.transpose_b ? b.shape[-2] : b.shape[-1], kb = p.transpose_b ? b.shape[-1] : b.shape[-2];
  PLUMB_CHECK(ka == kb, "matmul: a {}{} has {} columns and b {}{} has {} rows", a.shape,
              p.transpose_a ? " transposed" : "", ka, b.shape, p.transpose_b ? " transposed" : "", kb);
  const int rank = std::max(a.rank(), b.rank());
  int64_t e[kMaxRank];
  for (int d = 3; d <= rank; ++d) {
    const int64_t ea = d <= a.rank() ? a.shape[-d] : 1, eb = d <= b.rank() ? b.shape[-d] : 1;
    PLUMB_CHECK(ea == eb || ea == 1 || eb == 1, "matmul: the batches of a {} and b {} do not broadcast", a.shape,
                b.shape);
    e[rank - d] = ea == 1 ? eb : ea;
  }
  e[rank - 2] = m;
  e[rank - 1] = n;
  return {Shape(std::span<const int64_t>(e, static_cast<size_t>(rank))), a.dtype};
}

Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  PLUMB_CHECK(a && b, "matmul: {} is an empty tensor", a ? "b" : "a");
  const MatmulParams p{transpose_a, transpose_b};
  const TensorSpec spec = matmul_output(p, a.spec(), b.spec());
  if (a.rank() != b.rank())
    return matmul(with_rank(a, spec.rank()), with_rank(b, spec.rank()), transpose_a, transpose_b);
  return record(run<Matmul>(p, {a, b}, spec),
                wrt(a,
                    [p, b = SavedTensor(b), s = a.spec()](const Tensor& dy) {
                      const Tensor da = p.transpose_a ? matmul(b(), dy, p.transpose_b != 0, true)
                                                      : matmul(dy, b(), false, p.transpose_b == 0);
                      return sum_to(da, s);
                    }),
                wrt(b, [p, a = SavedTensor(a), s = b.spec()](const Tensor& dy) {
                  const Tensor db = p.transpose_b ? matmul(dy, a(), true, p.transpose_a != 0)
                                                  : matmul(a(), dy, p.transpose_a == 0, false);
                  return sum_to(db, s);
                }));
}

}  // namespace plumb
