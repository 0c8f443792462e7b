#include "ops/batch_norm.h"

#include "bench/job.h"
#include "dispatch/gate.h"
#include "ops/elementwise.h"
#include "ops/random.h"

namespace plumb::bench {
namespace {

void add_memory_rows_of(const char* direction, const TensorSpec& x, const std::string& problem, Job j) {
  j.values = {0.1, 1};  // a running variance is positive
  add_memory_rows(Path("batch_norm", direction, x, problem), j);
}

// As residual networks have it: what is added, and the ReLU, in its pass.
void add_fused(const TensorSpec& x, const TensorSpec& c, const std::string& problem) {
  const BatchNormParams p{.activation = Activation::kRelu};
  const Job work = job<BatchNormForward>(p, {x, c, c, c, c, x}, {x, c, c});
  add_memory_rows_of("forward_add_relu", x, problem, work);
  add_apart_row(Path("batch_norm", "forward_add_relu", x, problem), work, [=] {
    return [x = uniform(x, -1, 1, 1), addend = uniform(x, -1, 1, 2), gamma = uniform(c, 0.1, 1, 3),
            beta = uniform(c, 0.1, 1, 4), mean = uniform(c, 0.1, 1, 5),
            var = uniform(c, 0.1, 1, 6)] { relu(add(batch_norm(x, gamma, beta, mean, var), addend)); };
  });
}

// The gradients behind a ReLU, which is computed with them.
void add_backward_relu(const TensorSpec& x, const TensorSpec& c, const std::string& problem) {
  const BatchNormParams p{.activation = Activation::kRelu};
  const Job work = job<BatchNormBackward>(p, {x, x, c, c, c, c}, {c, c, x});
  add_memory_rows_of("backward_relu", x, problem, work);
  add_apart_row(Path("batch_norm", "backward_relu", x, problem), work, [=] {
    return [dy = uniform(x, -1, 1, 1), y = uniform(x, -1, 1, 2), of = uniform(x, -1, 1, 3),
            gamma = uniform(c, 0.1, 1, 4), mean = uniform(c, 0.1, 1, 5), inv_std = uniform(c, 0.1, 1, 6)] {
      const Tensor dz = unary_backward(functors::Relu{}, dy, y);
      run<BatchNormBackward>({}, {dz, of, gamma, mean, inv_std}, {gamma.spec(), gamma.spec(), of.spec()});
    };
  });
}

void add_all(const TensorSpec& x, const std::string& problem) {
  if (x.rank() != 4 && x.rank() != 2) return;
  const TensorSpec c(Shape{x.shape[1]}, x.dtype == DType::kBf16 ? DType::kF32 : x.dtype);
  BatchNormParams train, inference;
  inference.train = 0;
  add_memory_rows_of("forward", x, problem, job<BatchNormForward>(train, {x, c, c, c, c}, {x, c, c}));
  add_memory_rows_of("inference", x, problem, job<BatchNormForward>(inference, {x, c, c, c, c}, {x}));
  add_memory_rows_of("backward", x, problem, job<BatchNormBackward>(train, {x, x, c, c, c}, {c, c, x}));
  add_fused(x, c, problem);
  add_backward_relu(x, c, problem);
}

const RowSource rows(&add_all);

}  // namespace
}  // namespace plumb::bench
