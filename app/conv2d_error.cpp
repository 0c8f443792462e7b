#include "app/conv2d_error.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "kernels/conv2d.h"

namespace plumb::app {
namespace {

struct Operand {
  TensorSpec spec;
  const void* data;
  Strides strides = strides_of(spec);

  double operator()(int64_t a, int64_t b, int64_t c, int64_t d) const {
    const int64_t at = a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3];
    if (spec.dtype == DType::kBf16)
      return static_cast<double>(static_cast<float>(static_cast<const Bfloat16*>(data)[at]));
    if (spec.dtype == DType::kF64) return static_cast<const double*>(data)[at];
    return static_cast<double>(static_cast<const float*>(data)[at]);
  }
};

// The position in x that output row or column o sees through tap k, along one axis.
struct Axis {
  int64_t stride, dilation, before;
  int64_t in_x(int64_t o, int64_t k) const { return o * stride - before + k * dilation; }
};

struct Exact {
  Conv2dParams p;
  Axis vertical{p.stride[0], p.dilation[0], p.padding[0]}, horizontal{p.stride[1], p.dilation[1], p.padding[2]};

  double forward(const Operand& x, const Operand& w, int64_t n, int64_t oc, int64_t oh, int64_t ow) const {
    const Shape &xs = x.spec.shape, &ws = w.spec.shape;
    const int64_t first = oc / (ws[0] / p.groups) * ws[1];
    double sum = 0;
    for (int64_t kh = 0; kh < ws[2]; ++kh) {
      for (int64_t kw = 0; kw < ws[3]; ++kw) {
        const int64_t ih = vertical.in_x(oh, kh), iw = horizontal.in_x(ow, kw);
        if (ih < 0 || ih >= xs[2] || iw < 0 || iw >= xs[3]) continue;
        for (int64_t ic = 0; ic < ws[1]; ++ic) sum += x(n, first + ic, ih, iw) * w(oc, ic, kh, kw);
      }
    }
    return sum;
  }
  double backward_input(const Operand& dy, const Operand& w, int64_t n, int64_t ic, int64_t ih, int64_t iw) const {
    const Shape &ys = dy.spec.shape, &ws = w.spec.shape;
    const int64_t outputs = ws[0] / p.groups, group = ic / ws[1];
    double sum = 0;
    for (int64_t kh = 0; kh < ws[2]; ++kh) {
      for (int64_t kw = 0; kw < ws[3]; ++kw) {
        const int64_t up = ih - vertical.in_x(0, kh), left = iw - horizontal.in_x(0, kw);
        if (up < 0 || up % p.stride[0] || up / p.stride[0] >= ys[2]) continue;
        if (left < 0 || left % p.stride[1] || left / p.stride[1] >= ys[3]) continue;
        for (int64_t oc = group * outputs; oc < (group + 1) * outputs; ++oc) {
          sum += dy(n, oc, up / p.stride[0], left / p.stride[1]) * w(oc, ic % ws[1], kh, kw);
        }
      }
    }
    return sum;
  }
  double backward_weight(const Operand& dy, const Operand& x, const Shape& w, int64_t oc, int64_t ic, int64_t kh,
                         int64_t kw) const {
    const Shape &ys = dy.spec.shape, &xs = x.spec.shape;
    const int64_t channel = oc / (w[0] / p.groups) * w[1] + ic;
    double sum = 0;
    for (int64_t n = 0; n < ys[0]; ++n) {
      for (int64_t oh = 0; oh < ys[2]; ++oh) {
        for (int64_t ow = 0; ow < ys[3]; ++ow) {
          const int64_t ih = vertical.in_x(oh, kh), iw = horizontal.in_x(ow, kw);
          if (ih >= 0 && ih < xs[2] && iw >= 0 && iw < xs[3]) sum += dy(n, oc, oh, ow) * x(n, channel, ih, iw);
        }
      }
    }
    return sum;
  }
};

}  // namespace

double conv2d_error(const Prepared& p, std::span<void* const> in, const void* out) {
  constexpr int64_t kSamples = 256;
  const std::string_view kind = p.kind->name;
  PLUMB_CHECK(kind.starts_with("conv2d_"), "conv2d_error: {} is no convolution", kind);
  Conv2dParams params;
  std::memcpy(static_cast<void*>(&params), p.params.data(), sizeof params);
  const Exact exact{params};
  const Operand a{p.in()[0], in[0]}, b{p.in()[1], in[1]}, result{p.out()[0], out};
  const Shape& s = result.spec.shape;
  double largest = 0, error = 0;
  for (int64_t sample = 0; sample < std::min(kSamples, s.numel()); ++sample) {
    int64_t rest = sample * int64_t{2654435761} % s.numel();  // all channels and places in a tile
    const int64_t l = rest % s[3], k = (rest /= s[3]) % s[2], j = (rest /= s[2]) % s[1], i = rest / s[1];
    double sum = kind == "conv2d_forward"          ? exact.forward(a, b, i, j, k, l)
                 : kind == "conv2d_backward_input" ? exact.backward_input(a, b, i, j, k, l)
                                                   : exact.backward_weight(a, b, s, i, j, k, l);
    if (kind == "conv2d_forward" && p.in().size() == 3) sum += Operand{p.in()[2], in[2]}(j, 0, 0, 0);
    if (kind == "conv2d_forward" && params.activation == Activation::kRelu) sum = std::max(sum, 0.0);
    largest = std::max(largest, std::abs(sum));
    const double distance = std::abs(result(i, j, k, l) - sum);
    if (!std::isfinite(distance)) return distance;
    error = std::max(error, distance);
  }
  return largest > 0 ? error / largest : error;
}

}  // namespace plumb::app
