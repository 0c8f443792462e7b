#include "kernels/cpu/conv2d/conv2d_im2col.h"

#include "core/memory.h"
#include "kernels/cpu/conv2d/windows.h"
#include "kernels/cpu/gemm/skinny_gemm.h"
#include "kernels/cpu/parallel.h"

namespace plumb::cpu {
namespace {

// A convolution as a matrix product: windows (pixels, taps) times w (OC, taps)^T is pixels (pixels, OC).
struct Matrices : Windows {
  using Windows::Windows;

  int64_t pixels() const { return y[0] * y[2] * y[3]; }
  int64_t channels() const { return y[1]; }
  int64_t taps() const { return x[1] * KH * KW; }

  void gather(float* windows, const float* from) const {
    parallel_for(x[1], grain(), [&](int64_t begin, int64_t end) {
      each_window(begin, end, [&](int64_t place, int64_t at) { windows[place] = at < 0 ? 0.0f : from[at]; });
    });
  }
  /// The adjoint of gather: adds every window element to its element of x.
  void scatter(const float* windows, float* to) const {
    parallel_for(x[1], grain(), [&](int64_t begin, int64_t end) {
      for (int64_t n = 0; n < x[0]; ++n) {
        for (int64_t ic = begin; ic < end; ++ic) each_element(n, ic, [&](int64_t at) { to[at] = 0; });
      }
      each_window(begin, end, [&](int64_t place, int64_t at) {
        if (at >= 0) to[at] += windows[place];
      });
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
  /// Calls body(place, at) for the taps of all windows in some channels: the place in the matrix, and each_tap's
  /// offset.
  template <class Body>
  void each_window(int64_t begin, int64_t end, const Body& body) const {
    for (int64_t i = 0; i < pixels(); ++i) {
      int64_t place = i * taps() + begin * KH * KW;
      for (int64_t ic = begin; ic < end; ++ic)
        each_tap(i / image_pixels(), i % image_pixels(), ic, [&](int64_t at) { body(place++, at); });
    }
  }
  template <class Body>
  void each_output(const Body& body) const {
    int64_t place = 0;
    for (int64_t i = 0; i < pixels(); ++i) {
      const int64_t at = pixel_at(i / image_pixels(), i % image_pixels());
      for (int64_t oc = 0; oc < y[1]; ++oc) body(at + oc * ys[1], place++);
    }
  }
};

}  // namespace

std::unique_ptr<Kernel> conv2d_im2col(InnerProduct which, const ConvTensors& c) {
  const Matrices matrices(c);
  if (c.x.dtype != DType::kF32 || c.params.groups != 1 || c.is_empty() || matrices.pixels() > kMostThinRows) {
    return nullptr;
  }
  const size_t windows_bytes =
      detail::aligned(static_cast<size_t>(matrices.pixels() * matrices.taps()) * sizeof(float));
  auto kernel =
      make_kernel("plumb:im2col:skinny_gemm", [which, v = matrices, bias = c.has_bias, windows_bytes](const Launch& l) {
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
  if (!matrices.y_is_rows()) {
    kernel->info().workspace_bytes += static_cast<size_t>(matrices.pixels() * matrices.channels()) * sizeof(float);
    kernel->info().conversions = 1;
  }
  return kernel;
}

}  // namespace plumb::cpu
