#include "ops/pool2d.h"

#include <algorithm>
#include <limits>

#include "dispatch/gate.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"

namespace plumb {
namespace {

constexpr const char *kMax = "max_pool2d", *kAvg = "avg_pool2d";  // the names that errors use, in gradients too

int64_t output_extent(const char* op, const char* dimension, int64_t extent, int64_t kernel, int64_t stride,
                      int64_t before, int64_t after) {
  PLUMB_CHECK(kernel >= 1 && stride >= 1, "{}: kernel {} and stride {} along {} must be positive", op, kernel, stride,
              dimension);
  PLUMB_CHECK(
      before >= 0 && after >= 0 && before < kernel && after < kernel,
      "{}: padding {} and {} along {} must be smaller than the kernel {} and not negative; pad x with an op of its "
      "own for more",
      op, before, after, dimension, kernel);
  PLUMB_CHECK(extent >= 1 && extent + before + after >= kernel,
              "{}: a kernel of {} does not fit into {} elements of x and padding {} and {} along {}", op, kernel,
              extent, before, after, dimension);
  return (extent + before + after - kernel) / stride + 1;
}

// Canonical parameters of the same pooling: where there is a single window the stride has no effect, and no kernel sees
// one that is larger than the padded image and the window.
Pool2dParams smallest(Pool2dParams p, const Shape& x, const Shape& y) {
  for (int i = 0; i < 2; ++i) {
    if (y[2 + i] != 1) continue;
    const int64_t room = x[2 + i] + p.padding[2 * i] + p.padding[2 * i + 1] - p.kernel[i];
    p.stride[i] = static_cast<int32_t>(std::min<int64_t>(p.stride[i], std::max<int64_t>(room + 1, p.kernel[i])));
  }
  return p;
}

Tensor max_backward(const Tensor& dy, const Tensor& index, const Pool2dParams& p, const TensorSpec& x);

Tensor max_gather(const Tensor& g, const Tensor& index, const Pool2dParams& p) {
  const TensorSpec y = index.spec().with(g.dtype());
  return record(run<MaxPool2dGather>(p, {g, index}, y),
                wrt(g, kMax, [p, index = SavedTensor(index, kMax), s = g.spec()](const Tensor& dy) {
                  return max_backward(dy, index(), p, s);
                }));
}

Tensor max_backward(const Tensor& dy, const Tensor& index, const Pool2dParams& p, const TensorSpec& x) {
  return record(
      run<MaxPool2dBackward>(p, {dy, index}, x),
      wrt(dy, kMax, [p, index = SavedTensor(index, kMax)](const Tensor& g) { return max_gather(g, index(), p); }));
}

Tensor avg_backward(const Tensor& dy, const Pool2dParams& p, const TensorSpec& x) {
  return record(run<AvgPool2dBackward>(p, {dy}, x), wrt(dy, kAvg, [p](const Tensor& g) { return avg_pool2d(g, p); }));
}

}  // namespace

TensorSpec pool2d_output(const char* op, const Pool2dParams& params, const TensorSpec& x) {
  const Pool2dParams p = with_stride(params);
  PLUMB_CHECK(x.rank() == 4, "{}: x {} must have the four dimensions (N, C, H, W)", op, x.shape);
  detail::check_floating(op, x);
  const int64_t oh = output_extent(op, "H", x.shape[2], p.kernel[0], p.stride[0], p.padding[0], p.padding[1]);
  const int64_t ow = output_extent(op, "W", x.shape[3], p.kernel[1], p.stride[1], p.padding[2], p.padding[3]);
  return x.with(Shape{x.shape[0], x.shape[1], oh, ow});
}

Tensor max_pool2d(const Tensor& x, const Pool2dParams& params) {
  PLUMB_CHECK(x, "max_pool2d: x is an empty tensor");
  const TensorSpec spec = pool2d_output("max_pool2d", params, x.spec());
  const Pool2dParams p = smallest(with_stride(params), x.shape(), spec.shape);
  PLUMB_CHECK(int64_t{p.kernel[0]} * p.kernel[1] <= std::numeric_limits<int32_t>::max(),
              "max_pool2d: a kernel of {} x {} has more places than an i32 counts; pool rows first, then columns",
              p.kernel[0], p.kernel[1]);
  if (!is_recording() || !x.requires_grad()) return run<MaxPool2dForward>(p, {x}, spec);
  auto [y, index] = run<MaxPool2dForward, 2>(p, {x}, {spec, spec.with(pool2d_index_dtype(p))});
  return record(std::move(y), wrt(x, [p, index = SavedTensor(index), s = x.spec()](const Tensor& dy) {
                  return max_backward(dy, index(), p, s);
                }));
}

Tensor avg_pool2d(const Tensor& x, const Pool2dParams& params) {
  PLUMB_CHECK(x, "avg_pool2d: x is an empty tensor");
  PLUMB_CHECK(params.count_include_pad == 0 || params.count_include_pad == 1,
              "avg_pool2d: count_include_pad is {}; use 0 or 1", params.count_include_pad);
  const TensorSpec spec = pool2d_output("avg_pool2d", params, x.spec());
  const Pool2dParams p = smallest(with_stride(params), x.shape(), spec.shape);
  return record(run<AvgPool2dForward>(p, {x}, spec),
                wrt(x, [p, s = x.spec()](const Tensor& dy) { return avg_backward(dy, p, s); }));
}

Tensor global_avg_pool2d(const Tensor& x) {
  PLUMB_CHECK(x, "global_avg_pool2d: x is an empty tensor");
  PLUMB_CHECK(x.rank() == 4, "global_avg_pool2d: x {} must have the four dimensions (N, C, H, W)", x.shape());
  PLUMB_CHECK(x.shape()[2] > 0 && x.shape()[3] > 0, "global_avg_pool2d: x {} has no pixels to average", x.shape());
  return mean(x, {2, 3}, true);
}

}  // namespace plumb
