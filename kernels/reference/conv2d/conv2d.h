// One element of a convolution, or of its gradients, as the plain sum of its products in f64: what the reference
// kernels loop over, and what the errors of the others are measured against.
#pragma once

#include "core/spec.h"
#include "kernels/conv2d.h"

namespace plumb::reference {

/// A convolution whose operands are functions from four logical indices to a double.
struct Conv2dSums {
  Shape x, w, y;
  Conv2dParams p;

  /// Element (n, oc, oh, ow) of y, without bias and activation.
  template <class X, class W>
  double forward(const X& x_at, const W& w_at, int64_t n, int64_t oc, int64_t oh, int64_t ow) const {
    const int64_t first = oc / channels_out() * w[1];
    double sum = 0;
    for (int64_t kh = 0; kh < w[2]; ++kh) {
      for (int64_t kw = 0; kw < w[3]; ++kw) {
        const int64_t ih = row(oh, kh), iw = column(ow, kw);
        if (!is_in_x(ih, iw)) continue;
        for (int64_t ic = 0; ic < w[1]; ++ic) sum += x_at(n, first + ic, ih, iw) * w_at(oc, ic, kh, kw);
      }
    }
    return sum;
  }

  /// Element (n, channel, ih, iw) of dx: over all outputs that met it.
  template <class Y, class W>
  double backward_input(const Y& dy_at, const W& w_at, int64_t n, int64_t channel, int64_t ih, int64_t iw) const {
    const int64_t group = channel / w[1], ic = channel % w[1];
    double sum = 0;
    for (int64_t kh = 0; kh < w[2]; ++kh) {
      const int64_t down = ih - row(0, kh);
      if (down < 0 || down % p.stride[0] || down / p.stride[0] >= y[2]) continue;
      for (int64_t kw = 0; kw < w[3]; ++kw) {
        const int64_t right = iw - column(0, kw);
        if (right < 0 || right % p.stride[1] || right / p.stride[1] >= y[3]) continue;
        for (int64_t oc = group * channels_out(); oc < (group + 1) * channels_out(); ++oc)
          sum += dy_at(n, oc, down / p.stride[0], right / p.stride[1]) * w_at(oc, ic, kh, kw);
      }
    }
    return sum;
  }

  /// Element (oc, ic, kh, kw) of dw.
  template <class Y, class X>
  double backward_weight(const Y& dy_at, const X& x_at, int64_t oc, int64_t ic, int64_t kh, int64_t kw) const {
    const int64_t channel = oc / channels_out() * w[1] + ic;
    double sum = 0;
    for (int64_t n = 0; n < y[0]; ++n) {
      for (int64_t oh = 0; oh < y[2]; ++oh) {
        for (int64_t ow = 0; ow < y[3]; ++ow) {
          const int64_t ih = row(oh, kh), iw = column(ow, kw);
          if (is_in_x(ih, iw)) sum += dy_at(n, oc, oh, ow) * x_at(n, channel, ih, iw);
        }
      }
    }
    return sum;
  }

 private:
  int64_t channels_out() const { return w[0] / p.groups; }
  // The place in x that output row or column o meets through a tap of the filter.
  int64_t row(int64_t o, int64_t kh) const { return o * p.stride[0] - p.padding[0] + kh * p.dilation[0]; }
  int64_t column(int64_t o, int64_t kw) const { return o * p.stride[1] - p.padding[2] + kw * p.dilation[1]; }
  bool is_in_x(int64_t ih, int64_t iw) const { return ih >= 0 && ih < x[2] && iw >= 0 && iw < x[3]; }
};

}  // namespace plumb::reference
