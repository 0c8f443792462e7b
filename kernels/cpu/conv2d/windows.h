// Where the elements of a convolution's windows lie, in any layout.
#pragma once

#include "kernels/cpu/conv2d/conv_tensors.h"

namespace plumb::cpu {

/// A window has a pixel of y, the i-th of an image, and KH x KW taps in each channel of x.
struct Windows {
  Shape x, y;
  Strides xs, ys;
  Conv2dParams p;
  int64_t KH, KW;

  explicit Windows(const ConvTensors& c)
      : x(c.x.shape),
        y(c.y.shape),
        xs(strides_of(c.x)),
        ys(strides_of(c.y)),
        p(c.params),
        KH(c.w.shape[2]),
        KW(c.w.shape[3]) {}

  int64_t image_pixels() const { return y[2] * y[3]; }
  /// The offset in y of a pixel's first channel.
  int64_t pixel_at(int64_t n, int64_t i) const { return n * ys[0] + i / y[3] * ys[2] + i % y[3] * ys[3]; }
  /// Calls body(at) for each tap of a window in a channel; `at` is the offset in x, or -1 if it is outside of x.
  template <class Body>
  void each_tap(int64_t n, int64_t i, int64_t channel, const Body& body) const {
    const int64_t top = i / y[3] * p.stride[0] - p.padding[0], left = i % y[3] * p.stride[1] - p.padding[2];
    const int64_t plane = n * xs[0] + channel * xs[1];
    for (int64_t kh = 0; kh < KH; ++kh) {
      const int64_t ih = top + kh * p.dilation[0];
      const bool is_row = ih >= 0 && ih < x[2];
      for (int64_t kw = 0; kw < KW; ++kw) {
        const int64_t iw = left + kw * p.dilation[1];
        body(is_row && iw >= 0 && iw < x[3] ? plane + ih * xs[2] + iw * xs[3] : -1);
      }
    }
  }
  /// Calls body(at) for each element of a channel of x.
  template <class Body>
  void each_element(int64_t n, int64_t channel, const Body& body) const {
    const int64_t plane = n * xs[0] + channel * xs[1];
    for (int64_t ih = 0; ih < x[2]; ++ih) {
      for (int64_t iw = 0; iw < x[3]; ++iw) body(plane + ih * xs[2] + iw * xs[3]);
    }
  }
};

}  // namespace plumb::cpu
