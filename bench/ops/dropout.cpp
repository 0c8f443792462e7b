#include "kernels/dropout.h"

#include "bench/job.h"

namespace plumb::bench {
namespace {

void add(const Axes& axes) {
  for (const TensorProblem& p : axes.problems.tensor) {
    for (const Layout layout : axes.layouts_of(p.shape.rank())) {
      for (const DType t : axes.dtypes) {
        const TensorSpec x(p.shape, t, layout), mask(p.shape, DType::kU8, layout), state(Shape{2}, DType::kI64);
        const auto rows = [&](const char* direction, const Job& j) {
          add_memory_rows(Path("dropout", direction, x, p.name), j);
        };
        rows("forward", job<DropoutForward>({}, {x, state}, {x, mask}));
        rows("backward", job<DropoutBackward>({}, {x, mask}, {x}));
      }
    }
  }
}

const RowSource rows(&add);

}  // namespace
}  // namespace plumb::bench
