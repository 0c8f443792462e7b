#include "ops/linear.h"

#include "bench/raw_rows.h"
#include "ops/elementwise.h"

namespace plumb::bench {
namespace {

using measure::Direction;

// A layer as networks have it: bias and ReLU in the kernel of the product.
void add_fused(const TensorSpec& x, const TensorSpec& w, const TensorSpec& y, const std::string& problem) {
  const TensorSpec b(Shape{w.shape[0]}, w.dtype);
  const Path path("linear", "forward_bias_relu", x, problem);
  const Job work = job<LinearForward>({.activation = Activation::kRelu}, {x, w, b}, {y});
  add_kernel_rows(path, work);
  add_eager_row(path, work, [=] {
    return [x = uniform(x, -1, 1, 1), w = uniform(w, -1, 1, 2), b = uniform(b, -1, 1, 3)] {
      w.value->bump_version();
      linear(x, w, b, Activation::kRelu);
    };
  });
  add_apart_row(path, work, [=] {
    return [x = uniform(x, -1, 1, 1), w = uniform(w, -1, 1, 2), b = uniform(b, -1, 1, 3)] {
      w.value->bump_version();
      relu(add(linear(x, w), b));
    };
  });
  add_raw_rows(path, work, measure::RawLinear{Direction::kForward, x, w, y, true, Activation::kRelu});
}

// The gradients by weights and bias, which a device has from one product.
void add_weight_and_bias(const TensorSpec& x, const TensorSpec& w, const TensorSpec& y, const std::string& problem) {
  const TensorSpec b(Shape{w.shape[0]}, w.dtype);
  const Path path("linear", "backward_weight_bias", x, problem);
  const Job work = job<LinearBackwardWeightBias>({}, {y, x}, {w, b});
  add_kernel_rows(path, work);
  add_device_raw_rows(path, work, {work});
}

void add(const Axes& axes) {
  for (const LinearProblem& l : axes.problems.linear) {
    for (const DType t : axes.dtypes) {
      const TensorSpec x(Shape{l.n, l.in}, t), w(Shape{l.out, l.in}, t), y(Shape{l.n, l.out}, t);
      for (const Direction d : measure::kDirections) {
        const Path path("linear", to_string(d), x, l.name);
        const Job work = job_of<LinearForward, LinearBackwardInput, LinearBackwardWeight>(d, {}, x, w, y);
        add_kernel_rows(path, work);
        add_eager_row(path, work, [=] {
          return eager_call(
              d, x, w, y, [](const Tensor& a, const Tensor& b) { linear(a, b); },
              [](const Tensor& dy, const Tensor& b) { linear_backward_input(dy, b); },
              [](const Tensor& dy, const Tensor& a) { linear_backward_weight(dy, a); });
        });
        add_raw_rows(path, work, measure::RawLinear{d, x, w, y});
      }
      add_fused(x, w, y, l.name);
      if (!detail::ctx.policy.device.is_cpu()) add_weight_and_bias(x, w, y, l.name);
      if (!detail::ctx.policy.device.is_cpu() || !detail::prefers_joint_backward(x, w)) continue;
      const Path path("linear", "backward", x, l.name);
      const Job work = job<LinearBackward>({}, {y, x, w}, {x, w});
      add_kernel_rows(path, work);
      add_raw_rows(path, work, measure::RawLinearBackward{x, w, y});
    }
  }
}

const RowSource rows(&add);

}  // namespace
}  // namespace plumb::bench
