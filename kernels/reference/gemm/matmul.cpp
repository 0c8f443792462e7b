#include "kernels/matmul.h"

#include "kernels/reference/gemm/product.h"

namespace plumb {
namespace {

// Where each batch of the output finds its matrix in an operand.
std::vector<int64_t> batch_offsets(const Shape& operand, const Shape& y) {
  int64_t batches = 1;
  for (int d = 0; d < y.rank() - 2; ++d) batches *= y[d];
  std::vector<int64_t> offsets(static_cast<size_t>(batches));
  for (int64_t i = 0; i < batches; ++i) {
    int64_t rest = i, step = operand[-1] * operand[-2], at = 0;
    for (int d = y.rank() - 3; d >= 0; --d) {
      const int64_t index = rest % y[d];
      rest /= y[d];
      const int own = d - (y.rank() - operand.rank());
      if (own < 0) continue;
      if (operand[own] != 1) at += index * step;
      step *= operand[own];
    }
    offsets[static_cast<size_t>(i)] = at;
  }
  return offsets;
}

}  // namespace

void Matmul::reference(const Problem<Params>& p, Candidates& candidates) {
  const Shape &a = p.in[0].shape, &b = p.in[1].shape, &y = p.out[0].shape;
  reference::ProductSpec s{.dtype = p.out[0].dtype, .m = y[-2], .n = y[-1], .k = p.params.transpose_a ? a[-2] : a[-1]};
  s.transpose_a = p.params.transpose_a != 0;
  s.transpose_b = p.params.transpose_b != 0;
  candidates.add(Provider::kReference, "reference", [s, a, b, y] {
    reference::ProductSpec batched = s;  // offsets take memory that those who do not choose this need not pay for
    batched.a_offsets = batch_offsets(a, y);
    batched.b_offsets = batch_offsets(b, y);
    return reference::product_kernel(batched);
  });
}

double Matmul::flops(const Problem<Params>& p) {
  const Shape& a = p.in[0].shape;
  return 2.0 * static_cast<double>(p.out[0].numel()) * static_cast<double>(p.params.transpose_a ? a[-2] : a[-1]);
}

}  // namespace plumb
