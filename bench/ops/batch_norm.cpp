#include "kernels/batch_norm.h"

#include "bench/job.h"

namespace plumb::bench {
namespace {

void add_all(const TensorSpec& x, const std::string& problem) {
  if (x.rank() != 4 && x.rank() != 2) return;
  const TensorSpec c(Shape{x.shape[1]}, x.dtype == DType::kBf16 ? DType::kF32 : x.dtype);
  const auto rows = [&](const char* direction, Job j) {
    j.values = {0.1, 1};  // a running variance is positive
    add_memory_rows(Path("batch_norm", direction, x, problem), j);
  };
  BatchNormParams train, inference;
  inference.train = 0;
  rows("forward", job<BatchNormForward>(train, {x, c, c, c, c}, {x, c, c}));
  rows("inference", job<BatchNormForward>(inference, {x, c, c, c, c}, {x}));
  rows("backward", job<BatchNormBackward>(train, {x, x, c, c, c}, {c, c, x}));
}

const RowSource rows(&add_all);

}  // namespace
}  // namespace plumb::bench
