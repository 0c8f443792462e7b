// Layer normalisation. A row is read three times: for the mean, the moments about it and the result; after the first
// time it is in the caches.
#include "kernels/cuda/normalization/layer_norm.cuh"

namespace plumb {
namespace {

namespace math = functors::math;
using cuda::ByBlock;
using cuda::ByWarp;
using cuda::Compute;
using cuda::kRowThreads;
using cuda::kWarp;
using cuda::Piece;
using cuda::RowShared;
using cuda::layers::grid_of_rows;
using cuda::layers::is_long;
using cuda::layers::LayerNormRows;

template <class T>
struct ForwardArgs {
  const T* x;
  const Compute<T>*w, *b;  // or null
  T* y;
  Compute<T>*mean, *inv_std, epsilon;
  int64_t rows, columns;
};

// Sums about an element, so that a constant row has no deviation; the second pass corrects the mean of the first, whose
// rounding matters where the mean is large. Chan, Golub, LeVeque: Algorithms for computing the sample variance, 1983.
template <class Who, int kEach, class T>
__device__ void forward_row(const ForwardArgs<T>& a, int64_t row, RowShared<Compute<T>>* s) {
  using C = Compute<T>;
  const T* const x = a.x + row * a.columns;
  const C n = static_cast<C>(a.columns), pivot = cuda::load(x);
  C sum = 0, off = 0, squares = 0;
  cuda::for_pieces<Who, kEach>(x, a.columns, 1, [&](int64_t, const Piece<T, kEach>& v) {
    for (int j = 0; j < kEach; ++j) sum += cuda::wide(v.of[j]) - pivot;
  });
  const C centre = pivot + Who::all(sum, s, cuda::Sum()) / n;
  cuda::for_pieces<Who, kEach>(x, a.columns, 1, [&](int64_t, const Piece<T, kEach>& v) {
    for (int j = 0; j < kEach; ++j) {
      const C d = cuda::wide(v.of[j]) - centre;
      off += d;
      squares += d * d;
    }
  });
  const C lost = Who::all(off, s, cuda::Sum()) / n;
  const C var = Who::all(squares, s, cuda::Sum()) / n - lost * lost;
  const C inv_std = C(1) / math::sqrt(cuda::Largest()(var, C(0)) + a.epsilon), shift = -lost * inv_std;
  if (Who::first() == 0) {
    cuda::put(a.mean + row, centre + lost);
    cuda::put(a.inv_std + row, inv_std);
  }
  cuda::for_pieces<Who, kEach>(x, a.columns, 1, [&](int64_t i, const Piece<T, kEach>& v) {
    Piece<C, kEach> w{}, b{};
    if (a.w) w = cuda::load_piece<kEach>(a.w + i);
    if (a.b) b = cuda::load_piece<kEach>(a.b + i);
    Piece<T, kEach> y;
    for (int j = 0; j < kEach; ++j) {
      const C x_hat = (cuda::wide(v.of[j]) - centre) * inv_std + shift;
      y.of[j] = cuda::rounded<T>(a.w ? x_hat * w.of[j] + b.of[j] : x_hat);
    }
    cuda::store_piece(a.y + row * a.columns + i, y);
  });
}

template <class T, int kEach>
__global__ void __launch_bounds__(kRowThreads) layer_norm_by_warps_kernel(const ForwardArgs<T> a) {
#pragma unroll 1
  for (int64_t row = cuda::thread_of_grid() / kWarp; row < a.rows; row += cuda::threads_of_grid() / kWarp)
    forward_row<ByWarp, kEach>(a, row, static_cast<RowShared<Compute<T>>*>(nullptr));
}
template <class T, int kEach>
__global__ void __launch_bounds__(kRowThreads) layer_norm_by_blocks_kernel(const ForwardArgs<T> a) {
  auto& s = cuda::shared<RowShared<Compute<T>>>();
#pragma unroll 1
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) forward_row<ByBlock, kEach>(a, row, &s);
}

template <class T, int kEach>
std::unique_ptr<Kernel> forward_kernel(const LayerNormRows& v, double epsilon, size_t inputs, Device device) {
  using C = Compute<T>;
  const cuda::Grid grid = grid_of_rows(runtime_of(device), v);
  return cuda::own("plumb:layer_norm", device, v.rows > 0, [=](const cuda::Queue& q, const Launch& l) {
    const ForwardArgs<T> args{static_cast<const T*>(l.in[0]),
                              static_cast<const C*>(inputs > 1 ? l.in[1] : nullptr),
                              static_cast<const C*>(inputs > 2 ? l.in[2] : nullptr),
                              static_cast<T*>(l.out[0]),
                              static_cast<C*>(l.out[1]),
                              static_cast<C*>(l.out[2]),
                              static_cast<C>(epsilon),
                              v.rows,
                              v.columns};
    is_long(v) ? q.launch<layer_norm_by_blocks_kernel<T, kEach>>(grid, args)
               : q.launch<layer_norm_by_warps_kernel<T, kEach>>(grid, args);
  });
}

}  // namespace

void LayerNormForward::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.in[0].dtype, [&]<class T>() {
    constexpr int kEach = cuda::Vector<T>::kSize;
    candidates.add("rows", [v = detail::LayerNormRows(p.in[0], p.params), epsilon = double{p.params.epsilon},
                            inputs = p.in.size(), device = p.device] {
      return v.columns % kEach == 0 ? forward_kernel<T, kEach>(v, epsilon, inputs, device)
                                    : forward_kernel<T, 1>(v, epsilon, inputs, device);
    });
  });
}

}  // namespace plumb
