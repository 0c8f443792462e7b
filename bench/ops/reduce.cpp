#include "kernels/reduce.h"

#include "bench/job.h"

namespace plumb::bench {
namespace {

// The channels of images, or the columns of a matrix: what the gradient of a bias sums over the rest.
constexpr int kChannels = 1;

void add_all(const TensorSpec& x, const std::string& problem) {
  const uint32_t all = (1u << x.rank()) - 1;
  const auto reduced = [&](uint32_t dims) {
    Shape y = x.shape;
    for (int d = 0; d < x.rank(); ++d) {
      if (dims >> d & 1u) y = y.with(d, 1);
    }
    return x.with(y);
  };
  const auto rows = [&](const char* op, const Job& j) { add_memory_rows(Path(op, "forward", x, problem), j); };
  rows("sum", job<Reduce>({Reduction::kSum, all}, {x}, {reduced(all)}));
  rows("max", job<Reduce>({Reduction::kMax, all}, {x}, {reduced(all)}));
  if (x.rank() > kChannels) {
    const uint32_t channel = 1u << kChannels, rest = all & ~channel;
    rows("sum_channels", job<Reduce>({Reduction::kSum, rest}, {x}, {reduced(rest)}));
    rows("argmax_channels", job<Argmax>({channel}, {x}, {reduced(channel).with(DType::kI64)}));
  }
}

const RowSource rows(&add_all);

}  // namespace
}  // namespace plumb::bench
