// Conversions of layout and dtype, and what else moves elements.
#include "bench/job.h"
#include "kernels/cast.h"
#include "kernels/index_select.h"
#include "kernels/permute.h"
#include "kernels/reduce.h"
#include "kernels/slice.h"

namespace plumb::bench {
namespace {

void add_rows(const std::string& op, const TensorSpec& x, const std::string& problem, const Job& j) {
  add_memory_rows(Path(op, "forward", x, problem), j);
}

// Dimension 1 doubled, and broadcast from a row of it.
void add_rows_of_channels(const TensorSpec& x, const std::string& problem) {
  constexpr int kChannels = 1;
  const TensorSpec both = x.with(x.shape.with(kChannels, 2 * x.shape[kChannels]));
  TensorSpec row = x;
  for (int d = 0; d < x.rank(); ++d) {
    if (d != kChannels) row = row.with(row.shape.with(d, 1));
  }
  add_rows("concat", x, problem, job<Concat>({.dim = kChannels}, {x, x}, {both}));
  add_rows("expand", x, problem, job<Expand>({}, {row}, {x}));
}

// All dimensions in the opposite order; of a matrix, its transpose.
void add_reversed(const TensorSpec& x, const std::string& problem) {
  PermuteParams p;
  Shape y = x.shape;
  for (int d = 0; d < x.rank(); ++d) {
    p.dims[d] = x.rank() - 1 - d;
    y = y.with(d, x.shape[p.dims[d]]);
  }
  add_rows("permute_reversed", x, problem, job<Permute>(p, {x}, {x.with(y)}));
}

// As many slices as there are, by random numbers, and the gradient of that.
void add_indexed(const std::string& op, int dim, const TensorSpec& x, const std::string& problem) {
  const TensorSpec index(Shape{x.shape[dim]}, DType::kI64);
  for (Job j : {job<IndexSelect>({dim}, {x, index}, {x}), job<IndexAdd>({dim}, {x, index}, {x})}) {
    j.values.most = x.shape[dim] - 1;
    const bool is_forward = j.kind == &detail::kind_of<IndexSelect>;
    add_memory_rows(Path(op, is_forward ? "forward" : "backward", x, problem), j);
  }
}

void add_rows_of(const TensorSpec& x, const std::string& problem) {
  for (const DType to : {DType::kF32, DType::kBf16}) {
    if (to != x.dtype) add_rows("to_" + std::string(to_string(to)), x, problem, job<Cast>({}, {x}, {x.with(to)}));
  }
  if (x.rank() >= 2) add_rows_of_channels(x, problem);
  if (x.rank() >= 1) add_indexed("index_select_rows", 0, x, problem);
  if (x.rank() >= 2) add_indexed("index_select_channels", 1, x, problem);
  if (x.rank() >= 2 && x.layout == Layout::kNchw) add_reversed(x, problem);
  if (x.rank() != 4) return;
  for (const Layout to : kPublicLayouts) {
    if (to != x.layout) add_rows("to_" + to_string(to), x, problem, job<Permute>({}, {x}, {x.with(to)}));
  }
  const Shape& s = x.shape;
  const TensorSpec padded = x.with(Shape{s[0], s[1], s[2] + 2, s[3] + 2});
  const PadParams pad{.begin = {0, 0, 1, 1}, .value = 0};
  const SliceParams cut{.begin = {0, 0, 1, 1}};
  add_rows("pad2d", x, problem, job<Pad>(pad, {x}, {padded}));
  add_rows("slice", padded, problem, job<Slice>(cut, {padded}, {x}));
}

const RowSource rows(&add_rows_of);

}  // namespace
}  // namespace plumb::bench
