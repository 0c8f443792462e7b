// Convolution as plain loops over every product: the oracle.
#include "kernels/reference/conv2d/conv2d.h"

#include "kernels/cpu/element.h"
#include "kernels/cpu/parallel.h"
#include "kernels/reference/elements.h"

namespace plumb {
namespace {

using reference::Conv2dSums;

// The elements of an operand of dtype T, by four logical indices.
template <class T>
struct Operand {
  const void* data;
  const Strides& strides;
  double operator()(int64_t a, int64_t b, int64_t c, int64_t d) const {
    const int64_t at = a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3];
    return static_cast<double>(cpu::load(static_cast<const T*>(data) + at));
  }
};

// Writes sum(a, b, c, d) to every element of a result, on all threads.
template <class T, class Sum>
void write_each(void* result, const Shape& shape, const Strides& strides, const Sum& sum) {
  cpu::parallel_for(shape[0] * shape[1], 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t a = i / shape[1], b = i % shape[1];
      for (int64_t c = 0; c < shape[2]; ++c) {
        for (int64_t d = 0; d < shape[3]; ++d) {
          const int64_t at = a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3];
          static_cast<T*>(result)[at] = reference::rounded<T>(sum(a, b, c, d));
        }
      }
    }
  });
}

// What the three kernels have: the convolution, and where its operands' elements are.
struct Geometry {
  Conv2dSums sums;
  Strides x, w, y;
  Geometry(const TensorSpec& xt, const TensorSpec& wt, const TensorSpec& yt, const Conv2dParams& params)
      : sums{xt.shape, wt.shape, yt.shape, params}, x(strides_of(xt)), w(strides_of(wt)), y(strides_of(yt)) {}
};

double products(const Shape& w, const Shape& y) {
  return 2.0 * static_cast<double>(y.numel()) * static_cast<double>(w[1] * w[2] * w[3]);
}

}  // namespace

void Conv2dForward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Geometry g(p.in[0], p.in[1], p.out[0], p.params);
  cpu::dispatch_compute(p.out[0].dtype, [&]<class T>() {
    reference::offer(kName, candidates, [g, bias = p.in.size() == 3](const Launch& l) {
      const Operand<T> x{l.in[0], g.x}, w{l.in[1], g.w};
      write_each<T>(l.out[0], g.sums.y, g.y, [&](int64_t n, int64_t oc, int64_t oh, int64_t ow) {
        double sum = g.sums.forward(x, w, n, oc, oh, ow);
        if (bias) sum += static_cast<double>(cpu::load(static_cast<const T*>(l.in[2]) + oc));
        return g.sums.p.activation == Activation::kRelu && sum < 0 ? 0 : sum;
      });
    });
  });
}

void Conv2dBackwardInput::reference(const Problem<Params>& p, Candidates& candidates) {
  const Geometry g(p.out[0], p.in[1], p.in[0], p.params);
  cpu::dispatch_compute(p.out[0].dtype, [&]<class T>() {
    reference::offer(kName, candidates, [g](const Launch& l) {
      const Operand<T> dy{l.in[0], g.y}, w{l.in[1], g.w};
      write_each<T>(l.out[0], g.sums.x, g.x, [&](int64_t n, int64_t channel, int64_t ih, int64_t iw) {
        return g.sums.backward_input(dy, w, n, channel, ih, iw);
      });
    });
  });
}

void Conv2dBackwardWeight::reference(const Problem<Params>& p, Candidates& candidates) {
  const Geometry g(p.in[1], p.out[0], p.in[0], p.params);
  cpu::dispatch_compute(p.out[0].dtype, [&]<class T>() {
    reference::offer(kName, candidates, [g](const Launch& l) {
      const Operand<T> dy{l.in[0], g.y}, x{l.in[1], g.x};
      write_each<T>(l.out[0], g.sums.w, g.w, [&](int64_t oc, int64_t ic, int64_t kh, int64_t kw) {
        return g.sums.backward_weight(dy, x, oc, ic, kh, kw);
      });
    });
  });
}

double Conv2dForward::flops(const Problem<Params>& p) { return products(p.in[1].shape, p.out[0].shape); }
double Conv2dBackwardInput::flops(const Problem<Params>& p) { return products(p.in[1].shape, p.in[0].shape); }
double Conv2dBackwardWeight::flops(const Problem<Params>& p) { return products(p.out[0].shape, p.in[0].shape); }

}  // namespace plumb
