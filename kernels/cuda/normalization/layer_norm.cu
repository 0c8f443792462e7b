// Layer normalisation. Those who share a row keep it in registers; one that is too long for that is read three times:
// for the mean, the moments about it and the result; after the first time it is in the caches.
#include "kernels/cuda/normalization/layer_norm.cuh"
#include "kernels/cuda/softmax/kept.cuh"

namespace plumb {
namespace {

namespace math = functors::math;
using cuda::ByBlock;
using cuda::Compute;
using cuda::kRowThreads;
using cuda::Piece;
using cuda::RowShared;
using cuda::kept::Plan;
using cuda::kept::Share;
using cuda::layers::LayerNormRows;

template <class T>
struct ForwardArgs {
  const T* x;
  const Compute<T>*w, *b;  // or null
  T* y;
  Compute<T>*mean, *inv_std, epsilon;
  int64_t rows, columns;
  unsigned log;  // of the lanes that share a row
};

/// A row in registers.
template <class T, int kEach, int kPieces, class Who>
struct KeptRow {
  using C = Compute<T>;
  const Who& who;
  int columns;
  C v[kPieces][kEach];

  __device__ KeptRow(const Who& by, const T* x, int n) : who(by), columns(n) {
    Share<T, kEach, kPieces> raw;
    raw.load(who, x, n);
    raw.each(who, n, [&](int k, int) {
      const auto elements = raw.of[k].elements();
      for (int j = 0; j < kEach; ++j) v[k][j] = cuda::wide(elements.of[j]);
    });
  }
  __device__ C all(C sum) const { return who.all(sum, cuda::Sum()); }
  /// body(the elements of a piece, offset of the first).
  template <class Body>
  __device__ void each(const Body& body) const {
    Share<T, kEach, kPieces>::each(who, columns, [&](int k, int i) { body(v[k], i); });
  }
};
/// The same of a row that is read each time.
template <class T, int kEach>
struct LongRow {
  using C = Compute<T>;
  const T* x;
  int64_t columns;
  RowShared<C>* s;

  __device__ C all(C sum) const { return ByBlock::all(sum, s, cuda::Sum()); }
  template <class Body>
  __device__ void each(const Body& body) const {
    cuda::for_pieces<ByBlock, kEach>(x, columns, 1, [&](int64_t i, const Piece<T, kEach>& piece) {
      C v[kEach];
      for (int j = 0; j < kEach; ++j) v[j] = cuda::wide(piece.of[j]);
      body(v, i);
    });
  }
};

/// Where the elements of a row are, and how far: an element is (v - centre) inv_std + shift.
template <class C>
struct Moments {
  C centre, lost, inv_std;
};
// Sums about an element, so that a constant row has no deviation; the second sum corrects the mean of the first, whose
// rounding matters where the mean is large. Chan, Golub, LeVeque: Algorithms for computing the sample variance, 1983.
template <int kEach, class C, class Row>
__device__ Moments<C> moments(const Row& row, C n, C pivot, C epsilon) {
  C sum = 0, off = 0, squares = 0;
  row.each([&](const C(&v)[kEach], int64_t) {
    for (int j = 0; j < kEach; ++j) sum += v[j] - pivot;
  });
  const C centre = pivot + row.all(sum) / n;
  row.each([&](const C(&v)[kEach], int64_t) {
    for (int j = 0; j < kEach; ++j) {
      const C d = v[j] - centre;
      off += d;
      squares += d * d;
    }
  });
  const C lost = row.all(off) / n, var = row.all(squares) / n - lost * lost;
  return {centre, lost, C(1) / math::sqrt(cuda::Largest()(var, C(0)) + epsilon)};
}

template <int kEach, class T, class Row>
__device__ void forward_row(const ForwardArgs<T>& a, const Row& row, int64_t number, bool is_there, bool tells) {
  using C = Compute<T>;
  const int64_t first = number * a.columns;
  const C pivot = is_there ? cuda::load(a.x + first) : C(0);
  const Moments<C> m = moments<kEach>(row, static_cast<C>(a.columns), pivot, a.epsilon);
  const C shift = -m.lost * m.inv_std;
  if (tells && is_there) {
    cuda::put(a.mean + number, m.centre + m.lost);
    cuda::put(a.inv_std + number, m.inv_std);
  }
  row.each([&](const C(&v)[kEach], int64_t i) {
    Piece<C, kEach> w{}, b{};
    if (a.w) w = cuda::load_piece<kEach>(a.w + i);
    if (a.b) b = cuda::load_piece<kEach>(a.b + i);
    Piece<T, kEach> y;
    for (int j = 0; j < kEach; ++j) {
      const C x_hat = (v[j] - m.centre) * m.inv_std + shift;
      y.of[j] = cuda::rounded<T>(a.w ? x_hat * w.of[j] + b.of[j] : x_hat);
    }
    cuda::store_piece(a.y + first + i, y);
  });
}

// So many blocks a multiprocessor that some thousands of rows are all under way: with fewer a second round, of a few
// rows, took a third of the time on an H200.
template <class T, int kElements>
constexpr int kLeastBlocksOf = sizeof(T) == 4 || (sizeof(T) == 2 && kElements <= 16) ? 4 : 2;

template <class T, int kEach, int kPieces>
__global__ void __launch_bounds__(kRowThreads, kLeastBlocksOf<T, kEach * kPieces>)
    layer_norm_by_lanes_kernel(const ForwardArgs<T> a) {
  cuda::kept::for_lines_of_lanes(a.rows, a.log, [&](const auto& who, int64_t row, bool is_there) {
    const KeptRow<T, kEach, kPieces, cuda::kept::ByLanesOfWarp> kept(who, a.x + row * a.columns,
                                                                     is_there ? static_cast<int>(a.columns) : 0);
    forward_row<kEach>(a, kept, row, is_there, who.first() == 0);
  });
}
template <class T, int kEach, int kPieces>
__global__ void __launch_bounds__(kRowThreads, 2) layer_norm_by_whole_blocks_kernel(const ForwardArgs<T> a) {
  const cuda::kept::ByWholeBlock<Compute<T>> who{cuda::shared<RowShared<Compute<T>>>()};
#pragma unroll 1
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const KeptRow<T, kEach, kPieces, cuda::kept::ByWholeBlock<Compute<T>>> kept(who, a.x + row * a.columns,
                                                                                static_cast<int>(a.columns));
    forward_row<kEach>(a, kept, row, true, threadIdx.x == 0);
  }
}
template <class T, int kEach>
__global__ void __launch_bounds__(kRowThreads) layer_norm_by_blocks_kernel(const ForwardArgs<T> a) {
  auto& s = cuda::shared<RowShared<Compute<T>>>();
#pragma unroll 1
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x)
    forward_row<kEach>(a, LongRow<T, kEach>{a.x + row * a.columns, a.columns, &s}, row, true, threadIdx.x == 0);
}

template <class T, int kEach>
std::unique_ptr<Kernel> forward_kernel(const LayerNormRows& v, double epsilon, size_t inputs, Device device) {
  using C = Compute<T>;
  using P = Plan<T, kEach>;
  const P plan(v.columns);
  const auto way =
      plan.template way<ForwardArgs<T>, layer_norm_by_lanes_kernel<T, kEach, P::kFew>,
                        layer_norm_by_lanes_kernel<T, kEach, P::kMany>,
                        layer_norm_by_whole_blocks_kernel<T, kEach, P::kFew>,
                        layer_norm_by_whole_blocks_kernel<T, kEach, P::kMany>, layer_norm_by_blocks_kernel<T, kEach>>(
          runtime_of(device), v.rows);
  return cuda::own("plumb:layer_norm", device, v.rows > 0, [=, log = plan.log](const cuda::Queue& q, const Launch& l) {
    const ForwardArgs<T> args{static_cast<const T*>(l.in[0]),
                              static_cast<const C*>(inputs > 1 ? l.in[1] : nullptr),
                              static_cast<const C*>(inputs > 2 ? l.in[2] : nullptr),
                              static_cast<T*>(l.out[0]),
                              static_cast<C*>(l.out[1]),
                              static_cast<C*>(l.out[2]),
                              static_cast<C>(epsilon),
                              v.rows,
                              v.columns,
                              log};
    way.launch(q, args);
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
