#include "kernels/cpu/conv2d/conv2d_im2col.h"

#include "core/memory.h"
#include "kernels/cpu/gemm/skinny_gemm.h"
#include "kernels/cpu/parallel.h"

namespace plumb::cpu {
namespace {

// A convolution as a matrix product: windows (pixels, taps) times w (OC, taps)^T is pixels (pixels, OC).
struct Windows {
  Shape x, y;
  Strides xs, ys;
  Conv2dParams p;
  int64_t KH, KW;

  Windows(const TensorSpec& xt, const TensorSpec& w, const TensorSpec& yt, const Conv2dParams& params)
      : x(xt.shape), y(yt.shape), xs(strides_of(xt)), ys(strides_of(yt)), p(params), KH(w.shape[2]), KW(w.shape[3]) {}

  int64_t pixels() const { return y[0] * y[2] * y[3]; }
  int64_t channels() const { return y[1]; }
  int64_t taps() const { return x[1] * KH * KW; }

  /// Calls body(at, tap) for pixel i's window in channel ic; `at` is the offset in x, or -1 if outside x.
  template <class Body>
  void each_tap(int64_t i, int64_t ic, const Body& body) const {
    const int64_t n = i / (y[2] * y[3]), oh = i / y[3] % y[2], ow = i % y[3];
    int64_t tap = ic * KH * KW;
    for (int64_t kh = 0; kh < KH; ++kh) {
      const int64_t ih = oh * p.stride[0] - p.padding[0] + kh * p.dilation[0];
      for (int64_t kw = 0; kw < KW; ++kw, ++tap) {
        const int64_t iw = ow * p.stride[1] - p.padding[2] + kw * p.dilation[1];
        const bool inside = ih >= 0 && ih < x[2] && iw >= 0 && iw < x[3];
        body(inside ? n * xs[0] + ic * xs[1] + ih * xs[2] + iw * xs[3] : -1, tap);
      }
    }
  }
  void gather(float* windows, const float* from) const {
    parallel_for(x[1], grain(), [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < pixels(); ++i) {
        float* row = windows + i * taps();
        for (int64_t ic = begin; ic < end; ++ic) {
          each_tap(i, ic, [&](int64_t at, int64_t tap) { row[tap] = at < 0 ? 0.0f : from[at]; });
        }
      }
    });
  }
  /// The adjoint of gather: adds every window element to its element of x.
  void scatter(const float* windows, float* to) const {
    parallel_for(x[1], grain(), [&](int64_t begin, int64_t end) {
      for (int64_t ic = begin; ic < end; ++ic) {
        each_element(ic, [&](int64_t at) { to[at] = 0; });
        for (int64_t i = 0; i < pixels(); ++i) {
          const float* row = windows + i * taps();
          each_tap(i, ic, [&](int64_t at, int64_t tap) {
            if (at >= 0) to[at] += row[tap];
          });
        }
      }
    });
  }
  /// Whether y's memory is already a matrix with one row per pixel.
  bool y_is_rows() const { return (ys[1] == 1 || y[1] == 1) && ys[0] == y[1] * y[2] * y[3]; }
  /// y as a matrix with one row per pixel: y itself if its memory is one, else a copy in `rows`.
  const float* pixel_rows(float* rows, const float* from) const {
    if (y_is_rows()) return from;
    each_output([&](int64_t at, int64_t i) { rows[i] = from[at]; });
    return rows;
  }
  /// The inverse of pixel_rows, with the activation; `rows` may be `to`.
  void put_pixels(const float* rows, float* to) const {
    const bool relu = p.activation == Activation::kRelu;
    if (rows == to && !relu) return;
    each_output([&](int64_t at, int64_t i) { to[at] = relu && rows[i] < 0 ? 0.0f : rows[i]; });
  }

 private:
  int64_t grain() const { return kGrainBytes / (8 * KH * KW * std::max<int64_t>(pixels(), 1)); }
  template <class Body>
  void each_element(int64_t ic, const Body& body) const {
    for (int64_t n = 0; n < x[0]; ++n) {
      for (int64_t ih = 0; ih < x[2]; ++ih) {
        for (int64_t iw = 0; iw < x[3]; ++iw) body(n * xs[0] + ic * xs[1] + ih * xs[2] + iw * xs[3]);
      }
    }
  }
  template <class Body>
  void each_output(const Body& body) const {
    int64_t i = 0;
    for (int64_t n = 0; n < y[0]; ++n) {
      for (int64_t oh = 0; oh < y[2]; ++oh) {
        for (int64_t ow = 0; ow < y[3]; ++ow) {
          for (int64_t oc = 0; oc < y[1]; ++oc, ++i) body(n * ys[0] + oc * ys[1] + oh * ys[2] + ow * ys[3], i);
        }
      }
    }
  }
};

}  // namespace

std::unique_ptr<Kernel> conv2d_im2col(InnerProduct which, const TensorSpec& x, const TensorSpec& w, const TensorSpec& y,
                                      const Conv2dParams& p, bool bias) {
  const Windows windows(x, w, y, p);
  if (x.dtype != DType::kF32 || p.groups != 1 || windows.pixels() > kMostThinRows || !x.numel() || !w.numel()) {
    return nullptr;
  }
  const size_t windows_bytes = detail::aligned(static_cast<size_t>(windows.pixels() * windows.taps()) * sizeof(float));
  auto kernel = make_kernel("plumb:im2col:skinny_gemm", [which, v = windows, bias, windows_bytes](const Launch& l) {
    auto* rows = static_cast<float*>(l.workspace);
    auto* pixels = reinterpret_cast<float*>(static_cast<char*>(l.workspace) + windows_bytes);
    auto* out = static_cast<float*>(l.out[0]);
    const auto *first = static_cast<const float*>(l.in[0]), *second = static_cast<const float*>(l.in[1]);
    const int64_t m = v.pixels(), n = v.channels(), k = v.taps();
    switch (which) {
      case InnerProduct::kForward:
        v.gather(rows, first);
        if (v.y_is_rows()) pixels = out;
        skinny_gemm_forward(pixels, rows, second, bias ? static_cast<const float*>(l.in[2]) : nullptr, m, n, k);
        return v.put_pixels(pixels, out);
      case InnerProduct::kBackwardInput:
        skinny_gemm_backward_input(rows, v.pixel_rows(pixels, first), second, m, n, k);
        return v.scatter(rows, out);
      case InnerProduct::kBackwardWeight:
        v.gather(rows, second);
        return skinny_gemm_backward_weight(out, v.pixel_rows(pixels, first), rows, m, n, k);
    }
  });
  kernel->info().workspace_bytes = windows_bytes;
  if (!windows.y_is_rows()) {
    kernel->info().workspace_bytes += static_cast<size_t>(windows.pixels() * windows.channels()) * sizeof(float);
    kernel->info().conversions = 1;
  }
  return kernel;
}

}  // namespace plumb::cpu
