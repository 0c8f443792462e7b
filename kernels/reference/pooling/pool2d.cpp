// Pooling as plain loops over every window: the oracle, and the only kernel for f64.
#include "kernels/pool2d.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/element.h"
#include "kernels/cpu/parallel.h"
#include "kernels/reference/elements.h"

namespace plumb {
namespace {

using cpu::load;
using cpu::store;

// The windows of one pooling over x and y, one channel of one image (a plane) at a time.
struct Windows {
  Shape x, y;
  Strides xs, ys;
  Pool2dParams p;

  Windows(const TensorSpec& xt, const TensorSpec& yt, const Pool2dParams& params)
      : x(xt.shape), y(yt.shape), xs(strides_of(xt)), ys(strides_of(yt)), p(params) {}

  /// body(n, c) for all planes, in parallel.
  template <class Body>
  void each_plane(const Body& body) const {
    cpu::parallel_for(x[0] * x[1], 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(i / x[1], i % x[1]);
    });
  }
  /// body(oh, ow, offset in y) for all windows of plane (n, c); each_element visits what they see.
  template <class Body>
  void each_window(int64_t n, int64_t c, const Body& body) const {
    for (int64_t oh = 0; oh < y[2]; ++oh) {
      for (int64_t ow = 0; ow < y[3]; ++ow) body(oh, ow, n * ys[0] + c * ys[1] + oh * ys[2] + ow * ys[3]);
    }
  }
  /// body(position, offset in x) for the elements of a window that are inside x, in row-major order.
  template <class Body>
  void each_element(int64_t n, int64_t c, int64_t oh, int64_t ow, const Body& body) const {
    const int64_t top = oh * p.stride[0] - p.padding[0], left = ow * p.stride[1] - p.padding[2];
    for (int64_t ih = std::max<int64_t>(0, top); ih < std::min(x[2], top + p.kernel[0]); ++ih) {
      for (int64_t iw = std::max<int64_t>(0, left); iw < std::min(x[3], left + p.kernel[1]); ++iw) {
        body(static_cast<int32_t>((ih - top) * p.kernel[1] + iw - left),
             n * xs[0] + c * xs[1] + ih * xs[2] + iw * xs[3]);
      }
    }
  }
  int64_t divisor(int64_t n, int64_t c, int64_t oh, int64_t ow) const {
    if (p.count_include_pad) return int64_t{p.kernel[0]} * p.kernel[1];
    int64_t inside = 0;
    each_element(n, c, oh, ow, [&](int32_t, int64_t) { ++inside; });
    return inside;
  }
};

// Position tensors are u8 or i32.
int32_t position_at(DType t, const void* index, int64_t i) {
  return t == DType::kU8 ? static_cast<const uint8_t*>(index)[i] : static_cast<const int32_t*>(index)[i];
}
void set_position(DType t, void* index, int64_t i, int32_t position) {
  if (t == DType::kU8) {
    static_cast<uint8_t*>(index)[i] = static_cast<uint8_t>(position);
  } else {
    static_cast<int32_t*>(index)[i] = position;
  }
}

template <class T>
class MaxForwardKernel final : public Kernel {
 public:
  MaxForwardKernel(const Windows& w, bool index) : Kernel("reference:max_pool2d_forward"), w_(w), index_(index) {}
  void run(const Launch& l) const override {
    const auto* x = static_cast<const T*>(l.in[0]);
    w_.each_plane([&](int64_t n, int64_t c) {
      w_.each_window(n, c, [&](int64_t oh, int64_t ow, int64_t at) {
        int32_t position = -1;
        auto largest = -std::numeric_limits<cpu::Compute<T>>::infinity();
        w_.each_element(n, c, oh, ow, [&](int32_t k, int64_t from) {
          const auto v = load(x + from);
          if (position < 0 || v > largest || v != v) {
            position = k;
            largest = v;
          }
        });
        store(static_cast<T*>(l.out[0]) + at, largest);
        if (index_) set_position(pool2d_index_dtype(w_.p), l.out[1], at, position);
      });
    });
  }

 private:
  Windows w_;
  bool index_;
};

template <class T>
class MaxGatherKernel final : public Kernel {
 public:
  explicit MaxGatherKernel(const Windows& w) : Kernel("reference:max_pool2d_gather"), w_(w) {}
  void run(const Launch& l) const override {
    w_.each_plane([&](int64_t n, int64_t c) {
      w_.each_window(n, c, [&](int64_t oh, int64_t ow, int64_t at) {
        const int32_t position = position_at(pool2d_index_dtype(w_.p), l.in[1], at);
        w_.each_element(n, c, oh, ow, [&](int32_t k, int64_t from) {
          if (k == position) static_cast<T*>(l.out[0])[at] = static_cast<const T*>(l.in[0])[from];
        });
      });
    });
  }

 private:
  Windows w_;
};

template <class T>
class AvgForwardKernel final : public Kernel {
 public:
  explicit AvgForwardKernel(const Windows& w) : Kernel("reference:avg_pool2d_forward"), w_(w) {}
  void run(const Launch& l) const override {
    w_.each_plane([&](int64_t n, int64_t c) {
      w_.each_window(n, c, [&](int64_t oh, int64_t ow, int64_t at) {
        double sum = 0;
        w_.each_element(n, c, oh, ow, [&](int32_t, int64_t from) {
          sum += static_cast<double>(load(static_cast<const T*>(l.in[0]) + from));
        });
        const double mean = sum / static_cast<double>(w_.divisor(n, c, oh, ow));
        static_cast<T*>(l.out[0])[at] = reference::rounded<T>(mean);
      });
    });
  }

 private:
  Windows w_;
};

// Each element of dx gathers from all windows of its plane that it is in: simple, and exact in the order of its sums.
template <class T, bool kMax>
class BackwardKernel final : public Kernel {
 public:
  BackwardKernel(const char* name, const Windows& w) : Kernel(name), w_(w) {}
  void run(const Launch& l) const override {
    const auto* dy = static_cast<const T*>(l.in[0]);
    auto* dx = static_cast<T*>(l.out[0]);
    w_.each_plane([&](int64_t n, int64_t c) {
      for (int64_t ih = 0; ih < w_.x[2]; ++ih) {
        for (int64_t iw = 0; iw < w_.x[3]; ++iw) {
          double sum = 0;
          each_covering(ih, iw, [&](int64_t oh, int64_t ow, int32_t k) {
            const int64_t at = n * w_.ys[0] + c * w_.ys[1] + oh * w_.ys[2] + ow * w_.ys[3];
            const double g = static_cast<double>(load(dy + at));
            if constexpr (kMax) {
              if (position_at(pool2d_index_dtype(w_.p), l.in[1], at) == k) sum += g;
            } else {
              sum += g / static_cast<double>(w_.divisor(n, c, oh, ow));
            }
          });
          dx[n * w_.xs[0] + c * w_.xs[1] + ih * w_.xs[2] + iw * w_.xs[3]] = reference::rounded<T>(sum);
        }
      }
    });
  }

 private:
  template <class Body>
  void each_covering(int64_t ih, int64_t iw, const Body& body) const {
    for (int32_t kh = 0; kh < w_.p.kernel[0]; ++kh) {
      for (int32_t kw = 0; kw < w_.p.kernel[1]; ++kw) {
        const int64_t h = ih + w_.p.padding[0] - kh, v = iw + w_.p.padding[2] - kw;
        if (h < 0 || h % w_.p.stride[0] || h / w_.p.stride[0] >= w_.y[2]) continue;
        if (v < 0 || v % w_.p.stride[1] || v / w_.p.stride[1] >= w_.y[3]) continue;
        body(h / w_.p.stride[0], v / w_.p.stride[1], kh * w_.p.kernel[1] + kw);
      }
    }
  }
  Windows w_;
};

}  // namespace

void MaxPool2dForward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Windows w(p.in[0], p.out[0], p.params);
  cpu::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    candidates.add(Provider::kReference, "reference",
                   [w, index = p.out.size() == 2] { return std::make_unique<MaxForwardKernel<T>>(w, index); });
  });
}

void MaxPool2dBackward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Windows w(p.out[0], p.in[0], p.params);
  cpu::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    candidates.add(Provider::kReference, "reference",
                   [w] { return std::make_unique<BackwardKernel<T, true>>("reference:max_pool2d_backward", w); });
  });
}

void MaxPool2dGather::reference(const Problem<Params>& p, Candidates& candidates) {
  const Windows w(p.in[0], p.out[0], p.params);
  cpu::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    candidates.add(Provider::kReference, "reference", [w] { return std::make_unique<MaxGatherKernel<T>>(w); });
  });
}

void AvgPool2dForward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Windows w(p.in[0], p.out[0], p.params);
  cpu::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    candidates.add(Provider::kReference, "reference", [w] { return std::make_unique<AvgForwardKernel<T>>(w); });
  });
}

void AvgPool2dBackward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Windows w(p.out[0], p.in[0], p.params);
  cpu::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    candidates.add(Provider::kReference, "reference",
                   [w] { return std::make_unique<BackwardKernel<T, false>>("reference:avg_pool2d_backward", w); });
  });
}

}  // namespace plumb
