#include "kernels/reduce.h"

#include "bench/job.h"

namespace plumb::bench {
namespace {

// The channels of images, or the columns of a matrix: what the gradient of a bias sums over the rest.
constexpr int kChannels = 1;

void add(const Axes& axes) {
  for (const TensorProblem& p : axes.problems.tensor) {
    for (const Layout layout : axes.layouts_of(p.shape.rank())) {
      for (const DType t : axes.dtypes) {
        const TensorSpec x(p.shape, t, layout);
        const uint32_t all = (1u << x.rank()) - 1;
        const auto rows = [&](const char* op, Reduction what, uint32_t dims, DType result) {
          Shape y = p.shape;
          for (int d = 0; d < x.rank(); ++d) {
            if (dims >> d & 1u) y = y.with(d, 1);
          }
          const Job j = job<Reduce>({what, dims}, {x}, {TensorSpec(y, result, layout)});
          const Path path(op, "forward", x, p.name);
          add_kernel_rows(path, j);
          add_floor_row(path, j);
        };
        rows("sum", Reduction::kSum, all, t);
        rows("max", Reduction::kMax, all, t);
        if (x.rank() > kChannels) {
          rows("sum_channels", Reduction::kSum, all & ~(1u << kChannels), t);
          rows("argmax_channels", Reduction::kArgmax, 1u << kChannels, DType::kI64);
        }
      }
    }
  }
}

const RowSource rows(&add);

}  // namespace
}  // namespace plumb::bench
