#include "kernels/layer_norm.h"

#include "bench/job.h"

namespace plumb::bench {
namespace {

// The columns of a matrix.
void add_all(const TensorSpec& x, const std::string& problem) {
  if (x.rank() != 2) return;
  const DType wide = x.dtype == DType::kBf16 ? DType::kF32 : x.dtype;
  const TensorSpec of_row(Shape{x.shape[0], 1}, wide), of_column(Shape{x.shape[1]}, wide);
  const auto rows = [&](const char* direction, Job j) {
    j.values = {0.1, 1};  // inverse deviations are positive
    add_memory_rows(Path("layer_norm", direction, x, problem), j);
  };
  rows("forward", job<LayerNormForward>({}, {x, of_column, of_column}, {x, of_row, of_row}));
  rows("backward", job<LayerNormBackward>({}, {x, x, of_row, of_row, of_column}, {of_column, of_column, x}));
}

const RowSource rows(&add_all);

}  // namespace
}  // namespace plumb::bench
