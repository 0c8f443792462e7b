#include "kernels/softmax.h"

#include "bench/job.h"
#include "kernels/cross_entropy.h"

namespace plumb::bench {
namespace {

void add_rows(const char* op, const char* direction, const TensorSpec& x, const std::string& problem, const Job& j) {
  add_memory_rows(Path(op, direction, x, problem), j);
}

// The classes are dimension 1, of logits (N, K) and of images alike.
void add(const Axes& axes) {
  for (const TensorProblem& p : axes.problems.tensor) {
    if (p.shape.rank() < 2) continue;
    for (const Layout layout : axes.layouts_of(p.shape.rank())) {
      for (const DType t : axes.dtypes) {
        const TensorSpec x(p.shape, t, layout);
        add_rows("softmax", "forward", x, p.name, job<SoftmaxForward>({1, 0}, {x}, {x}));
        add_rows("softmax", "backward", x, p.name, job<SoftmaxBackward>({1, 0}, {x, x}, {x}));
        add_rows("log_softmax", "forward", x, p.name, job<SoftmaxForward>({1, 1}, {x}, {x}));
        add_rows("log_softmax", "backward", x, p.name, job<SoftmaxBackward>({1, 1}, {x, x}, {x}));
        if (x.rank() != 2 || p.shape[1] < 2) continue;  // the random labels want two classes
        const DType wide = t == DType::kBf16 ? DType::kF32 : t;
        const TensorSpec labels(Shape{p.shape[0]}, DType::kI64), loss(Shape{}, wide),
            statistics(Shape{p.shape[0], 2}, wide);
        add_rows("cross_entropy", "forward", x, p.name, job<CrossEntropyForward>({}, {x, labels}, {loss, statistics}));
        add_rows("cross_entropy", "backward", x, p.name,
                 job<CrossEntropyBackward>({}, {loss, x, labels, statistics}, {x}));
      }
    }
  }
}

const RowSource rows(&add);

}  // namespace
}  // namespace plumb::bench
