// Layer normalisation. A warp or, where it is long, a block has a row, which it reads three times to normalise it (the
// mean, the moments about it, the result) and twice for dx; after the first time it is in the caches. dw and db are
// sums over rows: those who compute dx keep them in registers, a part for each block, where these suffice; otherwise
// they are taken in a second pass.
#include "kernels/layer_norm.h"

#include "kernels/cuda/normalization/channel_sums.cuh"

namespace plumb {
namespace {

namespace math = functors::math;
using cuda::ByBlock;
using cuda::ByLanes;
using cuda::ByWarp;
using cuda::Compute;
using cuda::kRowThreads;
using cuda::kRowWarps;
using cuda::kWarp;
using cuda::Piece;
using cuda::RowShared;
using plumb::detail::LayerNormGradients;
using plumb::detail::LayerNormRows;

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
  const C inv_std = C(1) / math::sqrt((var < 0 ? C(0) : var) + a.epsilon), shift = -lost * inv_std;  // keeps NaN
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

template <class T>
struct BackwardArgs {
  const T *dy, *x;
  const Compute<T>*mean, *inv_std, *w;  // w or null
  T* dx;
  Compute<T>* parts;  // (block, dw or db, column), if they are kept
  int64_t rows, columns;
};

/// What a thread keeps for dw and db: of kPieces pieces of kEach columns, or nothing.
template <class C, int kEach, int kPieces>
struct KeptSums {
  C dw[kPieces][kEach] = {}, db[kPieces][kEach] = {};
  __device__ void add(int piece, int j, C dy, C x_hat) {
    dw[piece][j] += dy * x_hat;
    db[piece][j] += dy;
  }
};
template <class C, int kEach>
struct KeptSums<C, kEach, 0> {
  __device__ void add(int, int, C, C) {}
};

/// body(i, piece) for the pieces of this thread: kPieces at most, or any number if that is 0.
template <class Who, int kEach, int kPieces, class Body>
__device__ void for_columns(int64_t columns, const Body& body) {
  if constexpr (kPieces == 0) {
    for (int64_t i = int64_t{Who::first()} * kEach; i < columns; i += Who::kStep * kEach) body(i, 0);
  } else {
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      const int64_t i = int64_t{Who::first() + static_cast<unsigned>(piece) * Who::kStep} * kEach;
      if (i < columns) body(i, piece);
    }
  }
}

template <class Who, int kEach, int kPieces, class T>
__device__ void backward_row(const BackwardArgs<T>& a, int64_t row, RowShared<Compute<T>>* s,
                             KeptSums<Compute<T>, kEach, kPieces>& kept) {
  using C = Compute<T>;
  const int64_t first = row * a.columns;
  const C mean = cuda::get(a.mean + row), inv_std = cuda::get(a.inv_std + row), n = static_cast<C>(a.columns);
  const auto weights = [&](int64_t i) {
    if (a.w) return cuda::load_piece<kEach>(a.w + i);
    Piece<C, kEach> ones;
    for (int j = 0; j < kEach; ++j) ones.of[j] = 1;
    return ones;
  };
  C of_mean = 0, of_deviation = 0;
  for_columns<Who, kEach, kPieces>(a.columns, [&](int64_t i, int) {
    const auto dy = cuda::load_piece<kEach>(a.dy + first + i), x = cuda::load_piece<kEach>(a.x + first + i);
    const auto w = weights(i);
    for (int j = 0; j < kEach; ++j) {
      const C g = cuda::wide(dy.of[j]) * w.of[j];
      of_mean += g;
      of_deviation += g * ((cuda::wide(x.of[j]) - mean) * inv_std);
    }
  });
  of_mean = Who::all(of_mean, s, cuda::Sum()) / n;
  of_deviation = Who::all(of_deviation, s, cuda::Sum()) / n;
  for_columns<Who, kEach, kPieces>(a.columns, [&](int64_t i, int piece) {
    const auto dy = cuda::load_piece<kEach>(a.dy + first + i), x = cuda::load_piece<kEach>(a.x + first + i);
    const auto w = weights(i);
    Piece<T, kEach> dx;
    for (int j = 0; j < kEach; ++j) {
      const C d = cuda::wide(dy.of[j]), x_hat = (cuda::wide(x.of[j]) - mean) * inv_std;
      kept.add(piece, j, d, x_hat);
      dx.of[j] = cuda::rounded<T>(inv_std * (d * w.of[j] - of_mean - x_hat * of_deviation));
    }
    cuda::store_piece(a.dx + first + i, dx);
  });
}

/// The sums of a block's warps, of pieces side by side.
template <class C, int kEach>
struct WarpSumsShared {
  C dw[kRowWarps][kWarp * kEach], db[kRowWarps][kWarp * kEach];
};
template <class C, int kEach, int kPieces, class Args>
__device__ void put_sums_of_warps(const Args& a, const KeptSums<C, kEach, kPieces>& kept, WarpSumsShared<C, kEach>& s) {
  static_assert(kWarp * kEach <= kRowThreads);
  const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  C* const dw = a.parts + int64_t{blockIdx.x} * 2 * a.columns;
  C* const db = dw + a.columns;
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
    for (int j = 0; j < kEach; ++j) {
      s.dw[warp][lane * kEach + static_cast<unsigned>(j)] = kept.dw[piece][j];
      s.db[warp][lane * kEach + static_cast<unsigned>(j)] = kept.db[piece][j];
    }
    __syncthreads();
    const int64_t column = int64_t{piece} * kWarp * kEach + threadIdx.x;
    if (threadIdx.x < kWarp * kEach && column < a.columns) {
      C of_dw = 0, of_db = 0;
      for (unsigned w = 0; w < kRowWarps; ++w) {
        of_dw += s.dw[w][threadIdx.x];
        of_db += s.db[w][threadIdx.x];
      }
      cuda::put(dw + column, of_dw);
      cuda::put(db + column, of_db);
    }
    __syncthreads();
  }
}

template <class T, int kEach, int kPieces>
__global__ void __launch_bounds__(kRowThreads) layer_norm_backward_by_warps_kernel(const BackwardArgs<T> a) {
  using C = Compute<T>;
  KeptSums<C, kEach, kPieces> kept;
#pragma unroll 1
  for (int64_t row = cuda::thread_of_grid() / kWarp; row < a.rows; row += cuda::threads_of_grid() / kWarp)
    backward_row<ByWarp>(a, row, static_cast<RowShared<C>*>(nullptr), kept);
  if constexpr (kPieces > 0) put_sums_of_warps(a, kept, cuda::shared<WarpSumsShared<C, kEach>>());
}
template <class T, int kEach, int kPieces>
__global__ void __launch_bounds__(kRowThreads) layer_norm_backward_by_blocks_kernel(const BackwardArgs<T> a) {
  using C = Compute<T>;
  auto& s = cuda::shared<RowShared<C>>();
  KeptSums<C, kEach, kPieces> kept;
#pragma unroll 1
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) backward_row<ByBlock>(a, row, &s, kept);
  if constexpr (kPieces > 0) {
    C* const dw = a.parts + int64_t{blockIdx.x} * 2 * a.columns;
    for_columns<ByBlock, kEach, kPieces>(a.columns, [&](int64_t i, int piece) {
      Piece<C, kEach> of_dw, of_db;
      for (int j = 0; j < kEach; ++j) of_dw.of[j] = kept.dw[piece][j], of_db.of[j] = kept.db[piece][j];
      cuda::store_piece(dw + i, of_dw);
      cuda::store_piece(dw + a.columns + i, of_db);
    });
  }
}

template <class C>
struct PartsArgs {
  const C* parts;
  C *dw, *db;
  int64_t columns, blocks;
};
/// The parts of all blocks, in their order: neighbouring lanes have neighbouring columns.
template <class C>
__global__ void __launch_bounds__(kRowThreads) layer_norm_parts_kernel(const PartsArgs<C> a) {
  auto& s = cuda::shared<RowShared<double>>();
  const int64_t values = 2 * a.columns;
#pragma unroll 1
  for (int64_t first = int64_t{blockIdx.x} * kWarp; first < values; first += int64_t{gridDim.x} * kWarp) {
    const int64_t i = first + threadIdx.x % kWarp;
    const bool is_there = i < values;  // or it only waits with the others
    double sum = 0;
    for (int64_t block = ByLanes::first(); is_there && block < a.blocks; block += ByLanes::kStep)
      sum += static_cast<double>(cuda::get(a.parts + block * values + i));
    sum = ByLanes::all(sum, &s, cuda::Sum());
    if (ByLanes::first() == 0 && is_there)
      cuda::put(i < a.columns ? a.dw + i : a.db + (i - a.columns), static_cast<C>(sum));
  }
}

/// dw and db as sums over the channels of a matrix.
template <class T>
struct ParameterSums {
  using Element = T;
  using C = Compute<T>;
  struct State {
    double dw = 0, db = 0;
  };
  struct Chunk {
    C dw, db;
  };
  template <int kEach>
  struct Operands {
    Piece<T, kEach> dy, x;
    C mean, inv_std;
  };
  const T *dy, *x;
  const C *mean, *inv_std;
  C *dw, *db;
  cuda::Divisor columns;

  template <int kEach>
  __device__ Operands<kEach> fetch(int64_t at) const {
    const int64_t row = columns.quotient(at);
    return {cuda::load_piece<kEach>(dy + at), cuda::load_piece<kEach>(x + at), cuda::get(mean + row),
            cuda::get(inv_std + row)};
  }
  __device__ Chunk begin(const State&, int64_t, int64_t) const { return {0, 0}; }
  template <class Fetched>
  __device__ void add(Chunk& chunk, const Fetched& v, int j) const {
    const C d = cuda::wide(v.dy.of[j]);
    chunk.dw += d * ((cuda::wide(v.x.of[j]) - v.mean) * v.inv_std);
    chunk.db += d;
  }
  __device__ void end(State& s, const Chunk& chunk, int) const {
    s = merge(s, {static_cast<double>(chunk.dw), static_cast<double>(chunk.db)});
  }
  __device__ State merge(const State& p, const State& q) const { return {p.dw + q.dw, p.db + q.db}; }
  __device__ State from_lane(const State& s, int distance) const {
    return {__shfl_xor_sync(cuda::kAllLanes, s.dw, distance), __shfl_xor_sync(cuda::kAllLanes, s.db, distance)};
  }
  __device__ void finish(const State& s, int64_t c) const {
    cuda::put(dw + c, static_cast<C>(s.dw));
    cuda::put(db + c, static_cast<C>(s.db));
  }
};

bool is_long(const LayerNormRows& v) { return v.columns >= cuda::kLeastOfBlock; }
int64_t rows_at_a_time(const LayerNormRows& v) { return is_long(v) ? 1 : kRowWarps; }
cuda::Grid grid_of_rows(const Runtime& r, const LayerNormRows& v) {
  return cuda::grid_of(r, (v.rows + rows_at_a_time(v) - 1) / rows_at_a_time(v), kRowThreads);
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

template <class T>
BackwardArgs<T> backward_args(const LayerNormRows& v, const LayerNormGradients& wanted, const Launch& l) {
  using C = Compute<T>;
  return {static_cast<const T*>(l.in[0]),
          static_cast<const T*>(l.in[1]),
          static_cast<const C*>(l.in[2]),
          static_cast<const C*>(l.in[3]),
          static_cast<const C*>(wanted.has_w ? l.in[4] : nullptr),
          static_cast<T*>(wanted.needs_dx ? l.out[wanted.dx()] : nullptr),
          static_cast<C*>(l.workspace),
          v.rows,
          v.columns};
}

template <class T, int kEach>
std::unique_ptr<Kernel> two_passes(const LayerNormRows& v, const LayerNormGradients& wanted, Device device) {
  using C = Compute<T>;
  Runtime& r = runtime_of(device);
  const cuda::Grid grid = grid_of_rows(r, v);
  const cuda::ChannelSumsPlan<ParameterSums<T>> plan(
      r, cuda::ChannelView(TensorSpec(Shape{v.rows, v.columns}, dtype_of<T>)));
  const int launches = (wanted.needs_dx && v.rows > 0 ? 1 : 0) + (wanted.needs_dw ? plan.launches() : 0);
  auto kernel = cuda::own("plumb:layer_norm_backward", device, launches, [=](const cuda::Queue& q, const Launch& l) {
    const BackwardArgs<T> a = backward_args<T>(v, wanted, l);
    if (wanted.needs_dx) {
      is_long(v) ? q.launch<layer_norm_backward_by_blocks_kernel<T, kEach, 0>>(grid, a)
                 : q.launch<layer_norm_backward_by_warps_kernel<T, kEach, 0>>(grid, a);
    }
    if (!wanted.needs_dw) return;
    const ParameterSums<T> sums{
        a.dy, a.x, a.mean, a.inv_std, static_cast<C*>(l.out[0]), static_cast<C*>(l.out[1]), cuda::Divisor(v.columns)};
    plan.launch(q, sums, l.workspace);
  });
  if (wanted.needs_dw) kernel->info().workspace_bytes = plan.workspace_bytes();
  return kernel;
}

/// dx with parts of dw and db by kFunction, and then their sums.
template <class T, auto kFunction>
std::unique_ptr<Kernel> one_pass(const LayerNormRows& v, const LayerNormGradients& wanted, Device device) {
  using C = Compute<T>;
  constexpr int64_t kLeastTurns = 2, kBlocksOfMultiprocessor = 2;
  Runtime& r = runtime_of(device);
  cuda::Grid grid = grid_of_rows(r, v);
  const int64_t blocks = std::clamp<int64_t>(v.rows / (kLeastTurns * rows_at_a_time(v)), 1,
                                             kBlocksOfMultiprocessor * r.properties().multiprocessors);
  grid.blocks.x = static_cast<unsigned>(std::min<int64_t>(blocks, grid.blocks.x));
  auto kernel = cuda::own("plumb:layer_norm_backward", device, 2, [=](const cuda::Queue& q, const Launch& l) {
    const BackwardArgs<T> a = backward_args<T>(v, wanted, l);
    q.launch<kFunction>(grid, a);
    const PartsArgs<C> of_all{a.parts, static_cast<C*>(l.out[0]), static_cast<C*>(l.out[1]), v.columns, grid.blocks.x};
    const cuda::Grid of_parts = cuda::grid_of(q.runtime(), (2 * v.columns + kWarp - 1) / kWarp, kRowThreads);
    q.launch<layer_norm_parts_kernel<C>>(of_parts, of_all);
  });
  kernel->info().workspace_bytes = grid.blocks.x * 2 * static_cast<size_t>(v.columns) * sizeof(C);
  return kernel;
}

template <class T, int kEach>
void offer_backward(const Problem<LayerNormParams>& p, Candidates& candidates) {
  const LayerNormRows v(p.in[1], p.params);
  const LayerNormGradients wanted(p);
  // Columns of a thread, which has sums of as many for dw and for db.
  constexpr int kFew = 8, kManyOfBlock = 16, kManyOfWarp = 32;
  const int64_t sharers = is_long(v) ? kRowThreads : kWarp, of_thread = (v.columns + sharers - 1) / sharers;
  // f64 is for checking, and would take too many registers.
  if constexpr (!std::is_same_v<T, double>) {
    if (wanted.needs_dw && wanted.needs_dx && v.rows > 0 && of_thread <= (is_long(v) ? kManyOfBlock : kManyOfWarp)) {
      candidates.add("one_pass", [=, device = p.device] {
        if (is_long(v)) {
          return of_thread <= kFew
                     ? one_pass<T, &layer_norm_backward_by_blocks_kernel<T, kEach, kFew / kEach>>(v, wanted, device)
                     : one_pass<T, &layer_norm_backward_by_blocks_kernel<T, kEach, kManyOfBlock / kEach>>(v, wanted,
                                                                                                          device);
        }
        return of_thread <= kFew
                   ? one_pass<T, &layer_norm_backward_by_warps_kernel<T, kEach, kFew / kEach>>(v, wanted, device)
                   : one_pass<T, &layer_norm_backward_by_warps_kernel<T, kEach, kManyOfWarp / kEach>>(v, wanted,
                                                                                                      device);
      });
    }
  }
  candidates.add("rows", [=, device = p.device] { return two_passes<T, kEach>(v, wanted, device); });
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

void LayerNormBackward::cuda(const Problem<Params>& p, Candidates& candidates) {
  cuda::dispatch_compute(p.in[1].dtype, [&]<class T>() {
    constexpr int kEach = cuda::Vector<T>::kSize;
    const bool has_vectors = detail::LayerNormRows(p.in[1], p.params).columns % kEach == 0;
    has_vectors ? offer_backward<T, kEach>(p, candidates) : offer_backward<T, 1>(p, candidates);
  });
}

}  // namespace plumb
