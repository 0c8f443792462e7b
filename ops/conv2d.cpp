#include "ops/conv2d.h"

#include <algorithm>
#include <limits>

#include "dispatch/gate.h"
#include "kernels/relu_bias.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"

namespace plumb {
namespace {

// The parameters without the activation: then the three products of a convolution are each other's gradients.
Conv2dParams linear_part(Conv2dParams p) {
  p.activation = Activation::kNone;
  return p;
}

// The extent that a dilated kernel covers; the largest int64_t if it overflows.
int64_t reach_of(int64_t kernel, int64_t dilation) {
  int64_t reach;
  return __builtin_mul_overflow(dilation, kernel - 1, &reach) ? std::numeric_limits<int64_t>::max() : reach + 1;
}

int64_t output_extent(const char* what, int64_t in, int64_t kernel, int64_t before, int64_t after, int64_t stride,
                      int64_t dilation) {
  const int64_t reach = reach_of(kernel, dilation);
  PLUMB_CHECK(
      in + before + after >= reach,
      "conv2d: the kernel reaches over {} rows or columns, and x has a {} of {} with padding {} and {}; pad more or "
      "use a smaller kernel",
      reach, what, in, before, after);
  return (in + before + after - reach) / stride + 1;
}

// Canonical parameters of the same convolution. With a single window the stride has no effect, and with a window of a
// single element the dilation has none: all such convolutions share one kernel. The vendor's kernels, some of which
// fail on strides larger than the image, never see such strides.
Conv2dParams smallest(Conv2dParams p, const Shape& x, const Shape& w, const Shape& y) {
  for (int i = 0; i < 2; ++i) {
    if (w[2 + i] == 1) p.dilation[i] = 1;
    if (y[2 + i] != 1) continue;
    const int64_t room = x[2 + i] + p.padding[2 * i] + p.padding[2 * i + 1] - reach_of(w[2 + i], p.dilation[i]);
    p.stride[i] = static_cast<int32_t>(std::min<int64_t>(p.stride[i], room + 1));
  }
  return p;
}

void check_gradient(const char* op, const Tensor& dy, const Conv2dParams& p, const TensorSpec& x, const TensorSpec& w) {
  const TensorSpec expected = conv2d_output(p, x, w);
  PLUMB_CHECK(dy.spec() == expected, "{}: dy is {}; for x {} and w {} it must be {}", op, dy.spec(), x, w, expected);
}

constexpr char kName[] = "conv2d";

// y = relu(conv2d(x, w, b)) on a device: one pass makes of dy what is left behind the ReLU, and sums it for the bias.
Tensor record_relu_bias(Tensor y, const Tensor& x, const Tensor& w, const Tensor& b, const Conv2dParams& q) {
  const Tensor none;
  SavedTensor result(y, kName);  // before y moves on
  return record_joint<3>(
      std::move(y), {&x, &w, &b},
      [q, y = std::move(result), x = SavedTensor(w.requires_grad() ? x : none, kName),
       w = SavedTensor(x.requires_grad() ? w : none, kName), of_x = x.spec(), of_w = w.spec(),
       of_b = b.spec()](const Tensor& dy, const Needs<3>& needs) -> std::array<Tensor, 3> {
        Tensor dz, db;
        if (detail::ctx.recording || !needs[2]) {
          dz = unary_backward(functors::Relu{}, dy, y());
          if (needs[2]) db = sum(dz, {0, 2, 3});
        } else {
          auto [kept, sums] = run<ReluBiasBackward>({}, {dy, y()}, {dy.spec(), of_b});
          dz = std::move(kept), db = std::move(sums);
        }
        return {needs[0] ? conv2d_backward_input(dz, w(), q, of_x) : Tensor(),
                needs[1] ? conv2d_backward_weight(dz, x(), q, of_w) : Tensor(), std::move(db)};
      },
      kName);
}

}  // namespace

TensorSpec conv2d_output(const Conv2dParams& p, const TensorSpec& x, const TensorSpec& w) {
  PLUMB_CHECK(x.rank() == 4, "conv2d: x is {}; it must be (N, C, H, W)", x);
  PLUMB_CHECK(w.rank() == 4 && w.layout == Layout::kNchw,
              "conv2d: w is {}; it must be (OC, IC / groups, KH, KW), row-major", w);
  PLUMB_CHECK(is_floating(x.dtype) && x.dtype == w.dtype,
              "conv2d: x is {} and w is {}; both must be of one floating dtype", x.dtype, w.dtype);
  detail::check_activation("conv2d", p.activation);
  for (int i = 0; i < 2; ++i) {
    PLUMB_CHECK(p.stride[i] >= 1 && p.dilation[i] >= 1, "conv2d: stride {} and dilation {} must be at least 1",
                p.stride[i], p.dilation[i]);
  }
  for (const int32_t padding : p.padding)
    PLUMB_CHECK(padding >= 0, "conv2d: a padding is {}; it must not be negative", padding);
  PLUMB_CHECK(w.numel() > 0, "conv2d: w {} has no elements", w.shape);
  PLUMB_CHECK(p.groups >= 1 && w.shape[0] % p.groups == 0,
              "conv2d: w has {} output channels, which {} groups do not divide", w.shape[0], p.groups);
  PLUMB_CHECK(w.shape[1] * p.groups == x.shape[1], "conv2d: w has {} input channels in {} groups, x has {}", w.shape[1],
              p.groups, x.shape[1]);
  const int64_t oh =
      output_extent("height", x.shape[2], w.shape[2], p.padding[0], p.padding[1], p.stride[0], p.dilation[0]);
  const int64_t ow =
      output_extent("width", x.shape[3], w.shape[3], p.padding[2], p.padding[3], p.stride[1], p.dilation[1]);
  return {Shape{x.shape[0], w.shape[0], oh, ow}, x.dtype, x.layout};
}

Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& b, const Conv2dParams& params) {
  PLUMB_CHECK(x && w, "conv2d: {} is an empty tensor", x ? "w" : "x");
  const TensorSpec spec = conv2d_output(params, x.spec(), w.spec());
  const Conv2dParams p = smallest(params, x.shape(), w.shape(), spec.shape);
  PLUMB_CHECK(!b || b.spec() == TensorSpec(Shape{w.shape()[0]}, w.dtype()), "conv2d: b is {}; it must be {} ({})",
              b ? to_string(b.spec()) : "", w.dtype(), w.shape()[0]);
  Tensor y = b ? run<Conv2dForward>(p, {x, w, b}, spec) : run<Conv2dForward>(p, {x, w}, spec);
  const Conv2dParams q = linear_part(p);
  if (p.activation == Activation::kRelu && b && b.requires_grad() && !x.device().is_cpu())
    return record_relu_bias(std::move(y), x, w, b, q);
  const Tensor z = record(
      std::move(y),
      wrt(x, [q, w = SavedTensor(w), s = x.spec()](const Tensor& dy) { return conv2d_backward_input(dy, w(), q, s); }),
      wrt(w, [q, x = SavedTensor(x), s = w.spec()](const Tensor& dy) { return conv2d_backward_weight(dy, x(), q, s); }),
      wrt(b, [](const Tensor& dy) {
        return sum(dy, {0, 2, 3});
      }));
  return detail::record_activation(z, p.activation);
}

Tensor conv2d_backward_input(const Tensor& dy, const Tensor& w, const Conv2dParams& params, const TensorSpec& x) {
  PLUMB_CHECK(dy && w, "conv2d_backward_input: {} is an empty tensor", dy ? "w" : "dy");
  check_gradient("conv2d_backward_input", dy, params, x, w.spec());
  const Conv2dParams p = smallest(linear_part(params), x.shape, w.shape(), dy.shape());
  return record(run<Conv2dBackwardInput>(p, {dy, w}, x),
                wrt(dy, [p, w = SavedTensor(w)](const Tensor& g) { return conv2d(g, w(), p); }),
                wrt(w, [p, dy = SavedTensor(dy), s = w.spec()](const Tensor& g) {
                  return conv2d_backward_weight(dy(), g, p, s);
                }));
}

Tensor conv2d_backward_weight(const Tensor& dy, const Tensor& x, const Conv2dParams& params, const TensorSpec& w) {
  PLUMB_CHECK(dy && x, "conv2d_backward_weight: {} is an empty tensor", dy ? "x" : "dy");
  check_gradient("conv2d_backward_weight", dy, params, x.spec(), w);
  const Conv2dParams p = smallest(linear_part(params), x.shape(), w.shape, dy.shape());
  return record(run<Conv2dBackwardWeight>(p, {dy, x}, w),
                wrt(dy, [p, x = SavedTensor(x)](const Tensor& g) { return conv2d(x(), g, p); }),
                wrt(x, [p, dy = SavedTensor(dy), s = x.spec()](const Tensor& g) {
                  return conv2d_backward_input(dy(), g, p, s);
                }));
}

}  // namespace plumb
