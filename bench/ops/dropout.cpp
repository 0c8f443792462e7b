#include "kernels/dropout.h"

#include "bench/job.h"

namespace plumb::bench {
namespace {

void add_all(const TensorSpec& x, const std::string& problem) {
  const TensorSpec mask = x.with(DType::kU8), state(Shape{2}, DType::kI64);
  const auto rows = [&](const char* direction, const Job& j) {
    add_memory_rows(Path("dropout", direction, x, problem), j);
  };
  rows("forward", job<DropoutForward>({}, {x, state}, {x, mask}));
  rows("backward", job<DropoutBackward>({}, {x, mask}, {x}));
}

const RowSource rows(&add_all);

}  // namespace
}  // namespace plumb::bench
