#include "kernels/softmax.h"

#include "bench/job.h"
#include "kernels/cross_entropy.h"

namespace plumb::bench {
namespace {

void add_rows(const char* op, const char* direction, const TensorSpec& x, const std::string& problem, const Job& j) {
  add_memory_rows(Path(op, direction, x, problem), j);
}

// The classes are dimension 1, of logits (N, K) and of images alike.
void add_all(const TensorSpec& x, const std::string& problem) {
  if (x.rank() < 2) return;
  add_rows("softmax", "forward", x, problem, job<SoftmaxForward>({1, 0}, {x}, {x}));
  add_rows("softmax", "backward", x, problem, job<SoftmaxBackward>({1, 0}, {x, x}, {x}));
  add_rows("log_softmax", "forward", x, problem, job<SoftmaxForward>({1, 1}, {x}, {x}));
  add_rows("log_softmax", "backward", x, problem, job<SoftmaxBackward>({1, 1}, {x, x}, {x}));
  if (x.rank() != 2 || x.shape[1] < 2) return;  // the random labels want two classes
  const DType wide = x.dtype == DType::kBf16 ? DType::kF32 : x.dtype;
  const TensorSpec labels(Shape{x.shape[0]}, DType::kI64), loss(Shape{}, wide), statistics(Shape{x.shape[0], 2}, wide);
  add_rows("cross_entropy", "forward", x, problem, job<CrossEntropyForward>({}, {x, labels}, {loss, statistics}));
  add_rows("cross_entropy", "backward", x, problem, job<CrossEntropyBackward>({}, {loss, x, labels, statistics}, {x}));
}

const RowSource rows(&add_all);

}  // namespace
}  // namespace plumb::bench
