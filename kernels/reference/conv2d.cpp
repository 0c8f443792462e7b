// Convolution as plain loops over every product: the oracle, and the only kernel for f64.
#include "kernels/conv2d.h"

#include "kernels/cpu/element.h"
#include "kernels/cpu/parallel.h"
#include "kernels/reference/elements.h"

namespace plumb {
namespace {

// The geometry of one convolution, whichever of its tensors is the result.
struct Geometry {
  Shape x, w, y;
  Strides xs, ws, ys;
  Conv2dParams p;

  Geometry(const TensorSpec& xt, const TensorSpec& wt, const TensorSpec& yt, const Conv2dParams& params)
      : x(xt.shape), w(wt.shape), y(yt.shape), xs(strides_of(xt)), ws(strides_of(wt)), ys(strides_of(yt)), p(params) {}

  // The place in x that output (oh, ow) meets through (kh, kw), or false where that is padding.
  bool input_at(int64_t oh, int64_t ow, int64_t kh, int64_t kw, int64_t& ih, int64_t& iw) const {
    ih = oh * p.stride[0] - p.padding[0] + kh * p.dilation[0];
    iw = ow * p.stride[1] - p.padding[2] + kw * p.dilation[1];
    return ih >= 0 && ih < x[2] && iw >= 0 && iw < x[3];
  }
  int64_t channels_out() const { return w[0] / p.groups; }
};

int64_t at(const Strides& s, int64_t a, int64_t b, int64_t c, int64_t d) {
  return a * s[0] + b * s[1] + c * s[2] + d * s[3];
}

template <class T>
class ForwardKernel final : public Kernel {
 public:
  ForwardKernel(const Geometry& geometry, bool bias) : Kernel("reference:conv2d_forward"), g_(geometry), bias_(bias) {}
  void run(const Launch& l) const override {
    const auto *x = static_cast<const T*>(l.in[0]), *w = static_cast<const T*>(l.in[1]);
    const auto* b = bias_ ? static_cast<const T*>(l.in[2]) : nullptr;
    auto* y = static_cast<T*>(l.out[0]);
    cpu::parallel_for(g_.y[0] * g_.y[1], 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t n = i / g_.y[1], oc = i % g_.y[1], first = oc / g_.channels_out() * g_.w[1];
        for (int64_t oh = 0; oh < g_.y[2]; ++oh) {
          for (int64_t ow = 0; ow < g_.y[3]; ++ow) {
            double sum = b ? static_cast<double>(cpu::load(b + oc)) : 0.0;
            for (int64_t kh = 0; kh < g_.w[2]; ++kh) {
              for (int64_t kw = 0; kw < g_.w[3]; ++kw) {
                int64_t ih, iw;
                if (!g_.input_at(oh, ow, kh, kw, ih, iw)) continue;
                for (int64_t ic = 0; ic < g_.w[1]; ++ic) {
                  sum += static_cast<double>(cpu::load(x + at(g_.xs, n, first + ic, ih, iw))) *
                         static_cast<double>(cpu::load(w + at(g_.ws, oc, ic, kh, kw)));
                }
              }
            }
            if (g_.p.activation == Activation::kRelu && sum < 0) sum = 0;
            y[at(g_.ys, n, oc, oh, ow)] = reference::rounded<T>(sum);
          }
        }
      }
    });
  }

 private:
  Geometry g_;
  bool bias_;
};

template <class T>
class BackwardInputKernel final : public Kernel {
 public:
  explicit BackwardInputKernel(const Geometry& geometry) : Kernel("reference:conv2d_backward_input"), g_(geometry) {}
  void run(const Launch& l) const override {
    const auto *dy = static_cast<const T*>(l.in[0]), *w = static_cast<const T*>(l.in[1]);
    auto* dx = static_cast<T*>(l.out[0]);
    cpu::parallel_for(g_.x[0] * g_.x[1], 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t ih = 0; ih < g_.x[2]; ++ih) {
          for (int64_t iw = 0; iw < g_.x[3]; ++iw) {
            const double sum = gathered(dy, w, i / g_.x[1], i % g_.x[1], ih, iw);
            dx[at(g_.xs, i / g_.x[1], i % g_.x[1], ih, iw)] = reference::rounded<T>(sum);
          }
        }
      }
    });
  }

 private:
  // The sum over all outputs that met x at (n, channel, ih, iw).
  double gathered(const T* dy, const T* w, int64_t n, int64_t channel, int64_t ih, int64_t iw) const {
    const int64_t group = channel / g_.w[1], ic = channel % g_.w[1];
    double sum = 0;
    for (int64_t kh = 0; kh < g_.w[2]; ++kh) {
      const int64_t h = ih + g_.p.padding[0] - kh * g_.p.dilation[0];
      if (h < 0 || h % g_.p.stride[0] || h / g_.p.stride[0] >= g_.y[2]) continue;
      for (int64_t kw = 0; kw < g_.w[3]; ++kw) {
        const int64_t v = iw + g_.p.padding[2] - kw * g_.p.dilation[1];
        if (v < 0 || v % g_.p.stride[1] || v / g_.p.stride[1] >= g_.y[3]) continue;
        for (int64_t o = 0; o < g_.channels_out(); ++o) {
          const int64_t oc = group * g_.channels_out() + o;
          sum += static_cast<double>(cpu::load(dy + at(g_.ys, n, oc, h / g_.p.stride[0], v / g_.p.stride[1]))) *
                 static_cast<double>(cpu::load(w + at(g_.ws, oc, ic, kh, kw)));
        }
      }
    }
    return sum;
  }
  Geometry g_;
};

template <class T>
class BackwardWeightKernel final : public Kernel {
 public:
  explicit BackwardWeightKernel(const Geometry& geometry) : Kernel("reference:conv2d_backward_weight"), g_(geometry) {}
  void run(const Launch& l) const override {
    const auto *dy = static_cast<const T*>(l.in[0]), *x = static_cast<const T*>(l.in[1]);
    auto* dw = static_cast<T*>(l.out[0]);
    cpu::parallel_for(g_.w[0] * g_.w[1], 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t oc = i / g_.w[1], ic = i % g_.w[1], channel = oc / g_.channels_out() * g_.w[1] + ic;
        for (int64_t kh = 0; kh < g_.w[2]; ++kh) {
          for (int64_t kw = 0; kw < g_.w[3]; ++kw) {
            double sum = 0;
            for (int64_t n = 0; n < g_.y[0]; ++n) {
              for (int64_t oh = 0; oh < g_.y[2]; ++oh) {
                for (int64_t ow = 0; ow < g_.y[3]; ++ow) {
                  int64_t ih, iw;
                  if (!g_.input_at(oh, ow, kh, kw, ih, iw)) continue;
                  sum += static_cast<double>(cpu::load(dy + at(g_.ys, n, oc, oh, ow))) *
                         static_cast<double>(cpu::load(x + at(g_.xs, n, channel, ih, iw)));
                }
              }
            }
            dw[at(g_.ws, oc, ic, kh, kw)] = reference::rounded<T>(sum);
          }
        }
      }
    });
  }

 private:
  Geometry g_;
};

double products(const Shape& w, const Shape& y) {
  return 2.0 * static_cast<double>(y.numel()) * static_cast<double>(w[1] * w[2] * w[3]);
}

}  // namespace

void Conv2dForward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Geometry g(p.in[0], p.in[1], p.out[0], p.params);
  cpu::dispatch_compute(p.out[0].dtype, [&]<class T>() {
    candidates.add("reference", [g, bias = p.in.size() == 3] { return std::make_unique<ForwardKernel<T>>(g, bias); });
  });
}

void Conv2dBackwardInput::reference(const Problem<Params>& p, Candidates& candidates) {
  const Geometry g(p.out[0], p.in[1], p.in[0], p.params);
  cpu::dispatch_compute(p.out[0].dtype, [&]<class T>() {
    candidates.add("reference", [g] { return std::make_unique<BackwardInputKernel<T>>(g); });
  });
}

void Conv2dBackwardWeight::reference(const Problem<Params>& p, Candidates& candidates) {
  const Geometry g(p.in[1], p.out[0], p.in[0], p.params);
  cpu::dispatch_compute(p.out[0].dtype, [&]<class T>() {
    candidates.add("reference", [g] { return std::make_unique<BackwardWeightKernel<T>>(g); });
  });
}

double Conv2dForward::flops(const Problem<Params>& p) { return products(p.in[1].shape, p.out[0].shape); }
double Conv2dBackwardInput::flops(const Problem<Params>& p) { return products(p.in[1].shape, p.in[0].shape); }
double Conv2dBackwardWeight::flops(const Problem<Params>& p) { return products(p.out[0].shape, p.in[0].shape); }

}  // namespace plumb
