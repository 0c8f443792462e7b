// Pooling by windows of any size (the most common have kernels by pieces, too): a thread an element of the result,
// neighbours in memory by neighbouring threads. Gradients are gathered from the windows that an element is in, so that
// no two threads add to one; where windows do not overlap, a thread writes all that is in one.
#include "kernels/pool2d.h"

#include <limits>

#include "kernels/cuda/divide.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/extents.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/pooling/pieces.h"
#include "kernels/cuda/vendor/offers.h"

namespace plumb {
namespace {

using cuda::Compute;
using cuda::Divisor;

struct Index {
  int64_t n, c;
  int32_t h, w;
};

// The images on one side of a pooling.
struct Images {
  int64_t count;  // of elements
  int32_t h, w;
  int64_t stride[4];
  Layout layout;
  Divisor digit[3];  // extents in memory, innermost first

  explicit Images(const TensorSpec& s)
      : count(s.numel()),
        h(static_cast<int32_t>(s.shape[2])),
        w(static_cast<int32_t>(s.shape[3])),
        stride{strides_of(s)[0], strides_of(s)[1], strides_of(s)[2], strides_of(s)[3]},
        layout(s.layout) {
    const DimOrder order = memory_order(s.layout, 4);
    for (int i = 0; i < 3; ++i) digit[i] = Divisor(std::max<int64_t>(1, s.shape[order[3 - i]]));
  }
  __device__ Index index_of(int64_t at) const {
    int64_t a = at;
    int64_t b = digit[0].divide(a);
    int64_t c = digit[1].divide(b);
    const int64_t d = digit[2].divide(c);
    const auto index = [](int64_t n, int64_t channel, int64_t y, int64_t x) {
      return Index{n, channel, static_cast<int32_t>(y), static_cast<int32_t>(x)};
    };
    if (layout == Layout::kNchw) return index(d, c, b, a);
    if (layout == Layout::kNhwc) return index(d, a, c, b);
    return index(a, d, c, b);
  }
  __device__ int64_t plane(const Index& i) const { return i.n * stride[0] + i.c * stride[1]; }
};

struct Windows {
  Images x, y;
  int32_t kernel[2], stride[2], before[2];
  bool counts_padding;

  Windows(const TensorSpec& x_spec, const TensorSpec& y_spec, const Pool2dParams& p)
      : x(x_spec),
        y(y_spec),
        kernel{p.kernel[0], p.kernel[1]},
        stride{p.stride[0], p.stride[1]},
        before{p.padding[0], p.padding[2]},
        counts_padding(p.count_include_pad != 0) {}
};

struct Range {
  int32_t begin, end;
};
// Of the window of output `o`, the part inside an image of `extent`.
__device__ inline Range inside(const Windows& w, int axis, int32_t o, int32_t extent) {
  const int32_t first = o * w.stride[axis] - w.before[axis], last = first + w.kernel[axis];
  return {first < 0 ? 0 : first, last > extent ? extent : last};
}
// The outputs whose windows hold input `i`.
__device__ inline Range covering(const Windows& w, int axis, int32_t i, int32_t outputs) {
  const int32_t at = i + w.before[axis], first = at - w.kernel[axis] + 1, s = w.stride[axis];
  const int32_t end = at / s + 1;
  return {first <= 0 ? 0 : (first - 1) / s + 1, end > outputs ? outputs : end};
}
// What the mean of a window is divided by.
__device__ inline int64_t divisor(const Windows& w, int32_t oh, int32_t ow) {
  if (w.counts_padding) return int64_t{w.kernel[0]} * w.kernel[1];
  const Range h = inside(w, 0, oh, w.x.h), v = inside(w, 1, ow, w.x.w);
  return int64_t{h.end - h.begin} * (v.end - v.begin);
}

template <class T>
struct PoolArgs {
  Windows w;
  const T* in;
  T* out;
  void* index;  // u8, or i32 where that is too small; null where there is none
  bool is_wide;
};

template <class T>
__device__ int32_t position_at(const PoolArgs<T>& a, int64_t i) {
  return a.is_wide ? cuda::get(static_cast<const int32_t*>(a.index) + i)
                   : cuda::get(static_cast<const uint8_t*>(a.index) + i);
}

// body(ih, iw, element) for the part inside x of the window of output `o`.
template <class T, class Body>
__device__ void for_window(const PoolArgs<T>& a, const Index& o, const Body& body) {
  const Images& x = a.w.x;
  const Range h = inside(a.w, 0, o.h, x.h), v = inside(a.w, 1, o.w, x.w);
  const T* plane = a.in + x.plane(o);
  for (int32_t ih = h.begin; ih < h.end; ++ih) {
    for (int32_t iw = v.begin; iw < v.end; ++iw) body(ih, iw, cuda::load(plane + ih * x.stride[2] + iw * x.stride[3]));
  }
}
// body(oh, ow, place in y) for the outputs whose windows hold the input `at`.
template <class Body>
__device__ void for_covering(const Windows& w, const Index& at, const Body& body) {
  const Images& y = w.y;
  const Range h = covering(w, 0, at.h, y.h), v = covering(w, 1, at.w, y.w);
  const int64_t plane = y.plane(at);
  for (int32_t oh = h.begin; oh < h.end; ++oh) {
    for (int32_t ow = v.begin; ow < v.end; ++ow) body(oh, ow, plane + oh * y.stride[2] + ow * y.stride[3]);
  }
}

template <class T>
__global__ void __launch_bounds__(256, cuda::kLeastBlocks) max_forward_kernel(const PoolArgs<T> a) {
  const Windows& w = a.w;
#pragma unroll 1
  for (int64_t i = cuda::thread_of_grid(); i < w.y.count; i += cuda::threads_of_grid()) {
    const Index o = w.y.index_of(i);
    Compute<T> largest = -std::numeric_limits<Compute<T>>::infinity();
    int32_t place = -1;
    for_window(a, o, [&](int32_t ih, int32_t iw, Compute<T> value) {
      if (place < 0 || value > largest || value != value) {
        largest = value;
        place = (ih - o.h * w.stride[0] + w.before[0]) * w.kernel[1] + iw - o.w * w.stride[1] + w.before[1];
      }
    });
    cuda::store(a.out + i, largest);
    if (a.index && a.is_wide) cuda::put(static_cast<int32_t*>(a.index) + i, place);
    if (a.index && !a.is_wide) cuda::put(static_cast<uint8_t*>(a.index) + i, static_cast<uint8_t>(place));
  }
}

template <class T>
__global__ void __launch_bounds__(256) max_backward_kernel(const PoolArgs<T> a) {
  const Windows& w = a.w;
#pragma unroll 1
  for (int64_t i = cuda::thread_of_grid(); i < w.x.count; i += cuda::threads_of_grid()) {
    const Index at = w.x.index_of(i);
    Compute<T> sum = 0;
    for_covering(w, at, [&](int32_t oh, int32_t ow, int64_t from) {
      const int32_t kh = at.h + w.before[0] - oh * w.stride[0], kw = at.w + w.before[1] - ow * w.stride[1];
      if (position_at(a, from) == kh * w.kernel[1] + kw) sum += cuda::load(a.in + from);
    });
    cuda::store(a.out + i, sum);
  }
}

template <class T>
struct CellArgs {
  PoolArgs<T> pool;
  Images cells;
};

// Windows that do not overlap: x in cells of a stride each, the first of which begins before it by the padding. The
// cells past the last window are zeros. Of a maximum one element of a cell has the gradient, of a mean each its share.
template <class T, bool kMax>
__global__ void __launch_bounds__(256) backward_cells_kernel(const CellArgs<T> a) {
  const Windows& w = a.pool.w;
  const Images &x = w.x, &y = w.y;
#pragma unroll 1
  for (int64_t i = cuda::thread_of_grid(); i < a.cells.count; i += cuda::threads_of_grid()) {
    const Index o = a.cells.index_of(i);
    int32_t place = -1;
    Compute<T> dy = 0;
    if (o.h < y.h && o.w < y.w) {
      const int64_t from = y.plane(o) + o.h * y.stride[2] + o.w * y.stride[3];
      dy = cuda::load(a.pool.in + from);
      if constexpr (kMax) {
        place = position_at(a.pool, from);
      } else {
        dy /= static_cast<Compute<T>>(divisor(w, o.h, o.w));
      }
    }
    const int64_t plane = x.plane(o);
    const int32_t top = o.h * w.stride[0] - w.before[0], left = o.w * w.stride[1] - w.before[1];
    for (int32_t kh = 0; kh < w.stride[0]; ++kh) {
      const int32_t ih = top + kh;
      if (ih < 0 || ih >= x.h) continue;
      for (int32_t kw = 0; kw < w.stride[1]; ++kw) {
        const int32_t iw = left + kw;
        if (iw < 0 || iw >= x.w) continue;
        const bool is_inside = kh < w.kernel[0] && kw < w.kernel[1];
        const bool has_it = is_inside && (!kMax || kh * w.kernel[1] + kw == place);
        cuda::store(a.pool.out + plane + ih * x.stride[2] + iw * x.stride[3], has_it ? dy : Compute<T>(0));
      }
    }
  }
}

template <class T>
__global__ void __launch_bounds__(256) max_gather_kernel(const PoolArgs<T> a) {
  const Images &x = a.w.x, &y = a.w.y;
#pragma unroll 1
  for (int64_t i = cuda::thread_of_grid(); i < y.count; i += cuda::threads_of_grid()) {
    const Index o = y.index_of(i);
    const int32_t place = position_at(a, i);
    const int32_t ih = o.h * a.w.stride[0] - a.w.before[0] + place / a.w.kernel[1];
    const int32_t iw = o.w * a.w.stride[1] - a.w.before[1] + place % a.w.kernel[1];
    cuda::put(a.out + i, cuda::get(a.in + x.plane(o) + ih * x.stride[2] + iw * x.stride[3]));
  }
}

template <class T>
__global__ void __launch_bounds__(256) avg_forward_kernel(const PoolArgs<T> a) {
  const Images& x = a.w.x;
#pragma unroll 1
  for (int64_t i = cuda::thread_of_grid(); i < a.w.y.count; i += cuda::threads_of_grid()) {
    const Index o = a.w.y.index_of(i);
    const Range h = inside(a.w, 0, o.h, x.h), v = inside(a.w, 1, o.w, x.w);
    const T* plane = a.in + x.plane(o);
    Compute<T> sum = 0;
    for (int32_t ih = h.begin; ih < h.end; ++ih) {
      Compute<T> of_row = 0;  // one sum over a large window would lose the digits of its elements
      for (int32_t iw = v.begin; iw < v.end; ++iw) of_row += cuda::load(plane + ih * x.stride[2] + iw * x.stride[3]);
      sum += of_row;
    }
    cuda::store(a.out + i, sum / static_cast<Compute<T>>(divisor(a.w, o.h, o.w)));
  }
}

template <class T>
__global__ void __launch_bounds__(256, cuda::kFewBlocks) avg_backward_kernel(const PoolArgs<T> a) {
#pragma unroll 1
  for (int64_t i = cuda::thread_of_grid(); i < a.w.x.count; i += cuda::threads_of_grid()) {
    Compute<T> sum = 0;
    for_covering(a.w, a.w.x.index_of(i), [&](int32_t oh, int32_t ow, int64_t from) {
      sum += cuda::load(a.in + from) / static_cast<Compute<T>>(divisor(a.w, oh, ow));
    });
    cuda::store(a.out + i, sum);
  }
}

template <auto kFunction, class T>
void offer(const char* name, const Problem<Pool2dParams>& p, const Windows& w, Candidates& candidates) {
  const bool reads_index = p.in.size() == 2, writes_index = p.out.size() == 2;
  const bool is_wide = pool2d_index_dtype(p.params) == DType::kI32;
  const auto run = [=, results = p.out[0].numel()](const cuda::Queue& q, const Launch& l) {
    void* const index = reads_index ? l.in[1] : writes_index ? l.out[1] : nullptr;
    q.launch<kFunction>(cuda::grid_over(q.runtime(), results),
                        PoolArgs<T>{w, static_cast<const T*>(l.in[0]), static_cast<T*>(l.out[0]), index, is_wide});
  };
  cuda::offer(candidates, "loop", name, p.device, 1, run);
}

// Whether no two windows overlap, and a stride is little work for a thread.
bool has_cells(const Pool2dParams& p) {
  constexpr int64_t kMost = 4;
  return p.stride[0] >= p.kernel[0] && p.stride[1] >= p.kernel[1] && p.stride[0] <= kMost && p.stride[1] <= kMost;
}
template <class T, bool kMax>
void offer_cells(const char* name, const Problem<Pool2dParams>& p, const Windows& w, Candidates& candidates) {
  const Shape& x = p.out[0].shape;
  const auto cells_along = [&](int axis) {
    const int64_t stride = p.params.stride[axis], before = p.params.padding[2 * axis];
    return (x[2 + axis] + before + stride - 1) / stride;
  };
  const Images cells(p.out[0].with(Shape{x[0], x[1], cells_along(0), cells_along(1)}));
  const bool is_wide = pool2d_index_dtype(p.params) == DType::kI32;
  const auto run = [=](const cuda::Queue& q, const Launch& l) {
    const PoolArgs<T> pool{w, static_cast<const T*>(l.in[0]), static_cast<T*>(l.out[0]), kMax ? l.in[1] : nullptr,
                           is_wide};
    q.launch<backward_cells_kernel<T, kMax>>(cuda::grid_over(q.runtime(), cells.count), CellArgs<T>{pool, cells});
  };
  cuda::offer(candidates, "cells", name, p.device, 1, run);
}

}  // namespace

void MaxPool2dForward::cuda(const Problem<Params>& p, Candidates& c) {
  cuda::check_extents("max_pool2d", p.in[0], p.params.padding);
  cuda::offer_max_pool2d_pieces(p, c);
  const Windows w(p.in[0], p.out[0], p.params);
  cuda::dispatch_compute(p.in[0].dtype,
                         [&]<class T>() { offer<max_forward_kernel<T>, T>("plumb:max_pool2d", p, w, c); });
  if (p.out.size() == 1) cuda::offer_cudnn_pool2d(cuda::PoolOperation::kMaxForward, p, c);
}

void MaxPool2dBackward::cuda(const Problem<Params>& p, Candidates& c) {
  cuda::check_extents("max_pool2d", p.out[0], p.params.padding);
  cuda::offer_max_pool2d_backward_stream(p, c);
  cuda::offer_max_pool2d_backward_pieces(p, c);
  const Windows w(p.out[0], p.in[0], p.params);
  cuda::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    if (has_cells(p.params)) offer_cells<T, true>("plumb:max_pool2d_backward", p, w, c);
    offer<max_backward_kernel<T>, T>("plumb:max_pool2d_backward", p, w, c);
  });
}

void MaxPool2dGather::cuda(const Problem<Params>& p, Candidates& c) {
  cuda::check_extents("max_pool2d", p.in[0], p.params.padding);
  const Windows w(p.in[0], p.out[0], p.params);
  cuda::dispatch_compute(p.in[0].dtype,
                         [&]<class T>() { offer<max_gather_kernel<T>, T>("plumb:max_pool2d_gather", p, w, c); });
}

void AvgPool2dForward::cuda(const Problem<Params>& p, Candidates& c) {
  cuda::check_extents("avg_pool2d", p.in[0], p.params.padding);
  cuda::offer_avg_pool2d_pieces(p, c);
  const Windows w(p.in[0], p.out[0], p.params);
  cuda::dispatch_compute(p.in[0].dtype,
                         [&]<class T>() { offer<avg_forward_kernel<T>, T>("plumb:avg_pool2d", p, w, c); });
  cuda::offer_cudnn_pool2d(cuda::PoolOperation::kAvgForward, p, c);
}

void AvgPool2dBackward::cuda(const Problem<Params>& p, Candidates& c) {
  cuda::check_extents("avg_pool2d", p.out[0], p.params.padding);
  cuda::offer_avg_pool2d_backward_stream(p, c);
  cuda::offer_avg_pool2d_backward_pieces(p, c);
  const Windows w(p.out[0], p.in[0], p.params);
  cuda::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    if (has_cells(p.params)) offer_cells<T, false>("plumb:avg_pool2d_backward", p, w, c);
    offer<avg_backward_kernel<T>, T>("plumb:avg_pool2d_backward", p, w, c);
  });
}

}  // namespace plumb
