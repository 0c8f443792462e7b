#include "ops/linear.h"

#include "bench/raw_rows.h"
#include "ops/random.h"

namespace plumb::bench {
namespace {

using measure::Direction;

Job job_of(Direction d, const TensorSpec& x, const TensorSpec& w, const TensorSpec& y) {
  const LinearParams p{};
  switch (d) {
    case Direction::kForward: return job<LinearForward>(p, {x, w}, {y});
    case Direction::kBackwardInput: return job<LinearBackwardInput>(p, {y, w}, {x});
    case Direction::kBackwardWeight: return job<LinearBackwardWeight>(p, {y, x}, {w});
  }
  return {};
}

// Weights are marked as written before every call, as an optimizer leaves them: packing is part of a call.
std::function<void()> eager(Direction d, const TensorSpec& xs, const TensorSpec& ws, const TensorSpec& ys) {
  const Tensor w = uniform(ws, -1, 1, 2);
  switch (d) {
    case Direction::kForward:
      return [=, x = uniform(xs, -1, 1, 1)] {
        w.value->bump_version();
        linear(x, w);
      };
    case Direction::kBackwardInput:
      return [=, dy = uniform(ys, -1, 1, 1)] {
        w.value->bump_version();
        linear_backward_input(dy, w);
      };
    case Direction::kBackwardWeight:
      return [=, dy = uniform(ys, -1, 1, 1), x = uniform(xs, -1, 1, 3)] { linear_backward_weight(dy, x); };
  }
  return {};
}

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
        const Job work = job_of(d, x, w, y);
        add_kernel_rows(path, work);
        add_eager_row(path, work, [=] { return eager(d, x, w, y); });
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
