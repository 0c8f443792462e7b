// Pooling as plain loops over every window: the oracle, and the only kernel for f64.
#include "kernels/pool2d.h"

#include <algorithm>
#include <limits>

#include "kernels/reference/elements.h"

namespace plumb {
namespace {

using reference::Elements;
using reference::Index;
using reference::parallel_for_each_index;

// The windows of a pooling over images of shape x. Each is named by its place in y.
struct Windows {
  Shape x, y;
  Pool2dParams p;

  /// body(position, element) for the elements of a window that are inside x, in row-major order.
  template <class Body>
  void each_element(const Index& window, const Body& body) const {
    const int64_t top = window[2] * p.stride[0] - p.padding[0], left = window[3] * p.stride[1] - p.padding[2];
    for (int64_t ih = std::max<int64_t>(0, top); ih < std::min(x[2], top + p.kernel[0]); ++ih) {
      for (int64_t iw = std::max<int64_t>(0, left); iw < std::min(x[3], left + p.kernel[1]); ++iw) {
        body((ih - top) * p.kernel[1] + iw - left, Index{{window[0], window[1], ih, iw}});
      }
    }
  }
  /// body(position, window) for the windows that an element of x is in, and its position in each.
  template <class Body>
  void each_covering(const Index& element, const Body& body) const {
    // A stride apart, between the last window and the first that reach it.
    const auto first = [](int64_t at, int64_t stride, int64_t windows) {
      return std::max(at % stride, at - (windows - 1) * stride);
    };
    const int64_t h = element[2] + p.padding[0], v = element[3] + p.padding[2];
    for (int64_t kh = first(h, p.stride[0], y[2]); kh <= std::min<int64_t>(h, p.kernel[0] - 1); kh += p.stride[0]) {
      for (int64_t kw = first(v, p.stride[1], y[3]); kw <= std::min<int64_t>(v, p.kernel[1] - 1); kw += p.stride[1]) {
        body(kh * p.kernel[1] + kw, Index{{element[0], element[1], (h - kh) / p.stride[0], (v - kw) / p.stride[1]}});
      }
    }
  }
  double divisor(const Index& window) const {
    if (p.count_include_pad) return static_cast<double>(int64_t{p.kernel[0]} * p.kernel[1]);
    double inside = 0;
    each_element(window, [&](int64_t, const Index&) { ++inside; });
    return inside;
  }
};

}  // namespace

void MaxPool2dForward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements x(p.in[0]), y(p.out[0]), index(p.out.back());
  if (!reference::computes_on(x.dtype())) return;
  const Windows windows{x.shape(), y.shape(), p.params};
  reference::offer(kName, candidates, [=, has_index = p.out.size() == 2](const Launch& l) {
    parallel_for_each_index(y.shape(), [&](const Index& i) {
      int64_t position = -1;
      double largest = -std::numeric_limits<double>::infinity();
      windows.each_element(i, [&](int64_t k, const Index& from) {
        const double v = x.load(l.in[0], from);
        if (position < 0 || v > largest || v != v) {
          position = k;
          largest = v;
        }
      });
      y.store(l.out[0], i, largest);
      if (has_index) index.store_integer(l.out[1], i, position);
    });
  });
}

void MaxPool2dBackward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements dy(p.in[0]), index(p.in[1]), dx(p.out[0]);
  if (!reference::computes_on(dx.dtype())) return;
  const Windows windows{dx.shape(), dy.shape(), p.params};
  reference::offer(kName, candidates, [=](const Launch& l) {
    parallel_for_each_index(dx.shape(), [&](const Index& i) {
      double sum = 0;
      windows.each_covering(i, [&](int64_t k, const Index& window) {
        if (index.load_integer(l.in[1], window) == k) sum += dy.load(l.in[0], window);
      });
      dx.store(l.out[0], i, sum);
    });
  });
}

void MaxPool2dGather::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements g(p.in[0]), index(p.in[1]), y(p.out[0]);
  if (!reference::computes_on(g.dtype())) return;
  const Windows windows{g.shape(), y.shape(), p.params};
  reference::offer(kName, candidates, [=](const Launch& l) {
    parallel_for_each_index(y.shape(), [&](const Index& i) {
      const int64_t position = index.load_integer(l.in[1], i);
      windows.each_element(i, [&](int64_t k, const Index& from) {
        if (k == position) y.copy(l.out[0], i, g, l.in[0], from);
      });
    });
  });
}

void AvgPool2dForward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements x(p.in[0]), y(p.out[0]);
  if (!reference::computes_on(x.dtype())) return;
  const Windows windows{x.shape(), y.shape(), p.params};
  reference::offer(kName, candidates, [=](const Launch& l) {
    parallel_for_each_index(y.shape(), [&](const Index& i) {
      double sum = 0;
      windows.each_element(i, [&](int64_t, const Index& from) { sum += x.load(l.in[0], from); });
      y.store(l.out[0], i, sum / windows.divisor(i));
    });
  });
}

void AvgPool2dBackward::reference(const Problem<Params>& p, Candidates& candidates) {
  const Elements dy(p.in[0]), dx(p.out[0]);
  if (!reference::computes_on(dx.dtype())) return;
  const Windows windows{dx.shape(), dy.shape(), p.params};
  reference::offer(kName, candidates, [=](const Launch& l) {
    parallel_for_each_index(dx.shape(), [&](const Index& i) {
      double sum = 0;
      windows.each_covering(
          i, [&](int64_t, const Index& window) { sum += dy.load(l.in[0], window) / windows.divisor(window); });
      dx.store(l.out[0], i, sum);
    });
  });
}

}  // namespace plumb
