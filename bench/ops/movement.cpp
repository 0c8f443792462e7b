// Conversions of layout and dtype, and what else moves elements.
#include "bench/job.h"
#include "kernels/cast.h"
#include "kernels/permute.h"
#include "kernels/slice.h"

namespace plumb::bench {
namespace {

void add_rows(const std::string& op, const TensorSpec& x, const std::string& problem, const Job& j) {
  const Path path(op, "forward", x, problem);
  add_kernel_rows(path, j);
  add_floor_row(path, j);
}

void add_rows_of(const TensorSpec& x, const std::string& problem) {
  for (const DType to : {DType::kF32, DType::kBf16}) {
    if (to != x.dtype) add_rows("to_" + std::string(to_string(to)), x, problem, job<Cast>({}, {x}, {x.with(to)}));
  }
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

void add(const Axes& axes) {
  for (const TensorProblem& p : axes.problems.tensor) {
    for (const Layout layout : axes.layouts_of(p.shape.rank())) {
      for (const DType t : axes.dtypes) add_rows_of(TensorSpec(p.shape, t, layout), p.name);
    }
  }
}

const RowSource rows(&add);

}  // namespace
}  // namespace plumb::bench
