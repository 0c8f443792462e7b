#include "kernels/pool2d.h"

#include "bench/job.h"

namespace plumb::bench {
namespace {

void add(const Axes& axes) {
  for (const PoolProblem& p : axes.problems.pool2d) {
    for (const Layout layout : axes.layouts) {
      for (const DType t : axes.dtypes) {
        const TensorSpec x(p.x, t, layout), y(p.y, t, layout), index(p.y, pool2d_index_dtype(p.params), layout);
        const auto rows = [&](const char* op, const char* direction, const Job& j) {
          add_memory_rows(Path(op, direction, x, p.name), j);
        };
        rows("max_pool2d", "forward", job<MaxPool2dForward>(p.params, {x}, {y, index}));
        rows("max_pool2d", "inference", job<MaxPool2dForward>(p.params, {x}, {y}));
        Job backward = job<MaxPool2dBackward>(p.params, {y, index}, {x});
        backward.values.most = int64_t{p.params.kernel[0]} * p.params.kernel[1] - 1;
        rows("max_pool2d", "backward", backward);
        rows("avg_pool2d", "forward", job<AvgPool2dForward>(p.params, {x}, {y}));
        rows("avg_pool2d", "backward", job<AvgPool2dBackward>(p.params, {y}, {x}));
      }
    }
  }
}

const RowSource rows(&add);

}  // namespace
}  // namespace plumb::bench
