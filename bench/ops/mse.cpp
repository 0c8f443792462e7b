#include "kernels/mse.h"

#include "bench/job.h"

namespace plumb::bench {
namespace {

void add_rows(const TensorSpec& x, const std::string& problem) {
  const TensorSpec loss(Shape{}, x.dtype == DType::kF64 ? DType::kF64 : DType::kF32);
  add_memory_rows(Path("mse", "forward", x, problem), job<MseForward>({}, {x, x}, {loss}));
  add_memory_rows(Path("mse", "backward", x, problem), job<MseBackward>({}, {loss, x, x}, {x}));
}

const RowSource rows(&add_rows);

}  // namespace
}  // namespace plumb::bench
