#include "ops/conv2d.h"

#include "bench/raw_rows.h"
#include "kernels/relu_bias.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"

namespace plumb::bench {
namespace {

using measure::Direction;

constexpr auto kJobOf = job_of<Conv2dForward, Conv2dBackwardInput, Conv2dBackwardWeight>;

// The layouts of activations that cuDNN has its kernels in.
template <class Make>
std::vector<Job> in_all_layouts(const TensorSpec& x, const TensorSpec& y, Make&& make) {
  std::vector<Job> jobs;
  for (const Layout l : {Layout::kNchw, Layout::kNhwc}) jobs.push_back(make(x.with(l), y.with(l)));
  return jobs;
}

// A layer as networks have it: bias and ReLU in the kernel of the convolution.
void add_fused(const TensorSpec& x, const TensorSpec& w, const TensorSpec& y, const ConvProblem& c) {
  const TensorSpec b(Shape{w.shape[0]}, w.dtype);
  Conv2dParams p = c.params;
  p.activation = Activation::kRelu;
  const Path path("conv2d", "forward_bias_relu", x, c.name);
  const Job work = job<Conv2dForward>(p, {x, w, b}, {y});
  add_kernel_rows(path, work);
  add_eager_row(path, work, [=] {
    return [p, x = uniform(x, -1, 1, 1), w = uniform(w, -1, 1, 2), b = uniform(b, -1, 1, 3)] {
      w.value->bump_version();
      conv2d(x, w, b, p);
    };
  });
  add_apart_row(path, work, [=, plain = c.params] {
    return [plain, x = uniform(x, -1, 1, 1), w = uniform(w, -1, 1, 2),
            b = uniform({Shape{1, w.shape[0], 1, 1}, w.dtype, x.layout}, -1, 1, 3)] {
      w.value->bump_version();
      relu(add(conv2d(x, w, Tensor(), plain), b));
    };
  });
  add_raw_rows(path, work, measure::RawConv2d{Direction::kForward, x, w, y, p, true},
               in_all_layouts(x, y, [&](const TensorSpec& xs, const TensorSpec& ys) {
                 return job<Conv2dForward>(p, {xs, w, b}, {ys});
               }));
}

// Its way back to the convolution's own gradient: one pass on a device.
void add_relu_bias_backward(const TensorSpec& y, const ConvProblem& c) {
  const Path path("conv2d", "backward_bias_relu", y, c.name);
  const Job work = job<ReluBiasBackward>({}, {y, y}, {y, TensorSpec(Shape{y.shape[1]}, y.dtype)});
  add_memory_rows(path, work);
  add_apart_row(path, work, [=] {
    return [dy = uniform(y, -1, 1, 1), y = uniform(y, -1, 1, 2)] {
      sum(unary_backward(functors::Relu{}, dy, y), {0, 2, 3});
    };
  });
}

void add(const Axes& axes) {
  for (const ConvProblem& c : axes.problems.conv2d) {
    for (const Layout layout : axes.layouts) {
      for (const DType t : axes.dtypes) {
        const TensorSpec x(c.x, t, layout), w(c.w, t), y(c.y, t, layout);
        for (const Direction d : measure::kDirections) {
          const Path path("conv2d", to_string(d), x, c.name);
          const Job work = kJobOf(d, c.params, x, w, y);
          add_kernel_rows(path, work);
          add_eager_row(path, work, [=, p = c.params] {
            return eager_call(
                d, x, w, y, [p](const Tensor& a, const Tensor& b) { conv2d(a, b, p); },
                [p, x](const Tensor& dy, const Tensor& b) { conv2d_backward_input(dy, b, p, x); },
                [p, w](const Tensor& dy, const Tensor& a) { conv2d_backward_weight(dy, a, p, w); });
          });
          add_raw_rows(path, work, measure::RawConv2d{d, x, w, y, c.params},
                       in_all_layouts(x, y, [&](const TensorSpec& xs, const TensorSpec& ys) {
                         return kJobOf(d, c.params, xs, w, ys);
                       }));
        }
        add_fused(x, w, y, c);
        if (!detail::ctx.policy.device.is_cpu()) add_relu_bias_backward(y, c);
      }
    }
  }
}

const RowSource rows(&add);

}  // namespace
}  // namespace plumb::bench
