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
        const auto reduced = [&](uint32_t dims, DType result) {
          Shape y = p.shape;
          for (int d = 0; d < x.rank(); ++d) {
            if (dims >> d & 1u) y = y.with(d, 1);
          }
          return TensorSpec(y, result, layout);
        };
        const auto rows = [&](const char* op, const Job& j) { add_memory_rows(Path(op, "forward", x, p.name), j); };
        rows("sum", job<Reduce>({Reduction::kSum, all}, {x}, {reduced(all, t)}));
        rows("max", job<Reduce>({Reduction::kMax, all}, {x}, {reduced(all, t)}));
        if (x.rank() > kChannels) {
          const uint32_t channel = 1u << kChannels, rest = all & ~channel;
          rows("sum_channels", job<Reduce>({Reduction::kSum, rest}, {x}, {reduced(rest, t)}));
          rows("argmax_channels", job<Argmax>({channel}, {x}, {reduced(channel, DType::kI64)}));
        }
      }
    }
  }
}

const RowSource rows(&add);

}  // namespace
}  // namespace plumb::bench
