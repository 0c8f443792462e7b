#include "kernels/batch_norm.h"

#include "bench/job.h"

namespace plumb::bench {
namespace {

void add(const Axes& axes) {
  for (const TensorProblem& p : axes.problems.tensor) {
    if (p.shape.rank() != 4 && p.shape.rank() != 2) continue;
    for (const Layout layout : axes.layouts_of(p.shape.rank())) {
      for (const DType t : axes.dtypes) {
        const TensorSpec x(p.shape, t, layout), c(Shape{p.shape[1]}, t == DType::kBf16 ? DType::kF32 : t);
        const auto rows = [&](const char* direction, Job j) {
          j.low = 0.1, j.high = 1;  // a running variance is positive
          add_memory_rows(Path("batch_norm", direction, x, p.name), j);
        };
        BatchNormParams train, inference;
        inference.train = 0;
        rows("forward", job<BatchNormForward>(train, {x, c, c, c, c}, {x, c, c}));
        rows("inference", job<BatchNormForward>(inference, {x, c, c, c, c}, {x}));
        rows("backward", job<BatchNormBackward>(train, {x, x, c, c, c}, {c, c, x}));
      }
    }
  }
}

const RowSource rows(&add);

}  // namespace
}  // namespace plumb::bench
