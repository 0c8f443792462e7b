// The gradients of layer normalisation. Those who compute dx keep their row, and what it adds to dw and db, in
// registers, a part for each block, where these suffice; otherwise the row is read twice, and dw and db are taken in a
// second pass.
#pragma once

#include "kernels/cuda/normalization/layer_norm.cuh"
#include "kernels/cuda/softmax/kept.cuh"

namespace plumb::cuda::layers {

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

/// A thread's share of a row of dy or x: in registers if these suffice beside those of the sums, or read again.
template <class T, int kEach, int kPieces>
struct RowShare {
  using Raw = kept::RawPiece<T, kEach>;
  static constexpr int kMostRegisters = 80, kWords = sizeof(Raw) / sizeof(typename Raw::Word);
  static constexpr bool kIsKept = kPieces > 0 && 2 * kPieces*(kEach + kWords) <= kMostRegisters;
  const T* row;
  Raw of[kIsKept ? kPieces : 1];

  __device__ void load(int64_t i, int piece) {
    if constexpr (kIsKept) of[piece] = kept::load_raw<kEach>(row + i);
  }
  __device__ Piece<T, kEach> elements(int64_t i, int piece) const {
    if constexpr (kIsKept) {
      return of[piece].elements();
    } else {
      return load_piece<kEach>(row + i);
    }
  }
};

/// Two sums over those who share a row: they wait for each other half as often as for one after the other.
template <class Who, class C>
__device__ void sum_both(C& a, C& b, RowShared<C>* s) {
  for (int distance = 1; distance < int{kWarp}; distance *= 2) {
    const C of_a = __shfl_xor_sync(kAllLanes, a, distance), of_b = __shfl_xor_sync(kAllLanes, b, distance);
    a += of_a, b += of_b;
  }
  if constexpr (std::is_same_v<Who, ByBlock>) {
    if (threadIdx.x % kWarp == 0) s->of[0][threadIdx.x / kWarp] = a, s->of[1][threadIdx.x / kWarp] = b;
    __syncthreads();
    a = b = 0;
    for (unsigned w = 0; w < kRowWarps; ++w) a += s->of[0][w], b += s->of[1][w];
    __syncthreads();
  }
}

template <class Who, int kEach, int kPieces, class T>
__device__ void backward_row(const BackwardArgs<T>& a, int64_t row, RowShared<Compute<T>>* s,
                             KeptSums<Compute<T>, kEach, kPieces>& kept) {
  using C = Compute<T>;
  const int64_t first = row * a.columns;
  const C mean = cuda::get(a.mean + row), inv_std = cuda::get(a.inv_std + row), n = static_cast<C>(a.columns);
  const auto weights = [&](int64_t i) { return a.w ? cuda::load_piece<kEach>(a.w + i) : Piece<C, kEach>{}; };
  const auto scaled = [&](C d, C w) { return a.w ? d * w : d; };
  RowShare<T, kEach, kPieces> of_dy, of_x;
  of_dy.row = a.dy + first, of_x.row = a.x + first;
  if constexpr (of_x.kIsKept) {
    for_columns<Who, kEach, kPieces>(a.columns, [&](int64_t i, int piece) {
      of_dy.load(i, piece);
      of_x.load(i, piece);
    });
  }
  C of_mean = 0, of_deviation = 0;
  for_columns<Who, kEach, kPieces>(a.columns, [&](int64_t i, int piece) {
    const auto dy = of_dy.elements(i, piece), x = of_x.elements(i, piece);
    const auto w = weights(i);
    for (int j = 0; j < kEach; ++j) {
      const C g = scaled(cuda::wide(dy.of[j]), w.of[j]);
      of_mean += g;
      of_deviation += g * ((cuda::wide(x.of[j]) - mean) * inv_std);
    }
  });
  sum_both<Who>(of_mean, of_deviation, s);
  of_mean /= n, of_deviation /= n;
  for_columns<Who, kEach, kPieces>(a.columns, [&](int64_t i, int piece) {
    const auto dy = of_dy.elements(i, piece), x = of_x.elements(i, piece);
    const auto w = weights(i);
    Piece<T, kEach> dx;
    for (int j = 0; j < kEach; ++j) {
      const C d = cuda::wide(dy.of[j]), x_hat = (cuda::wide(x.of[j]) - mean) * inv_std;
      kept.add(piece, j, d, x_hat);
      dx.of[j] = cuda::rounded<T>(inv_std * (scaled(d, w.of[j]) - of_mean - x_hat * of_deviation));
    }
    cuda::store_piece(a.dx + first + i, dx);
  });
}

/// Sums of a block's warps, of dw or db.
template <class C, int kColumns>
struct WarpSumsShared {
  alignas(16) C of[kRowWarps][kColumns];
};
template <class C, int kEach, int kPieces>
__device__ void put_sums_of_warps(C* to, int64_t columns, const C (&sums)[kPieces][kEach],
                                  WarpSumsShared<C, kPieces * kEach* int{kWarp}>& s) {
  C* const mine = s.of[threadIdx.x / kWarp] + threadIdx.x % kWarp * kEach;
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
    for (int j = 0; j < kEach; ++j) mine[piece * int{kWarp} * kEach + j] = sums[piece][j];
  }
  __syncthreads();
#pragma unroll 1
  for (int64_t column = threadIdx.x; column < columns; column += kRowThreads) {
    C sum = 0;
    for (unsigned w = 0; w < kRowWarps; ++w) sum += s.of[w][column];
    cuda::put(to + column, sum);
  }
  __syncthreads();
}

template <class T, int kEach, int kPieces>
__global__ void __launch_bounds__(kRowThreads, 2) layer_norm_backward_by_warps_kernel(const BackwardArgs<T> a) {
  using C = Compute<T>;
  KeptSums<C, kEach, kPieces> kept;
#pragma unroll 1
  for (int64_t row = cuda::thread_of_grid() / kWarp; row < a.rows; row += cuda::threads_of_grid() / kWarp)
    backward_row<ByWarp>(a, row, static_cast<RowShared<C>*>(nullptr), kept);
  if constexpr (kPieces > 0) {
    auto& s = cuda::shared<WarpSumsShared<C, kPieces * kEach* int{kWarp}>>();
    C* const dw = a.parts + int64_t{blockIdx.x} * 2 * a.columns;
    put_sums_of_warps(dw, a.columns, kept.dw, s);
    put_sums_of_warps(dw + a.columns, a.columns, kept.db, s);
  }
}
template <class T, int kEach, int kPieces>
__global__ void __launch_bounds__(kRowThreads, kPieces == 0 ? kLeastBlocks : 2)
    layer_norm_backward_by_blocks_kernel(const BackwardArgs<T> a) {
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
    const C* part = a.parts + ByLanes::first() * values + i;
    int64_t left = is_there ? (a.blocks - ByLanes::first() + ByLanes::kStep - 1) / ByLanes::kStep : 0;
    const int64_t step = ByLanes::kStep * values;
    constexpr int kUnderWay = 16;  // a device waits for one round of them about as long as for one of them
#pragma unroll 1
    for (; left > 0; left -= kUnderWay, part += kUnderWay * step) {
      C v[kUnderWay]{};
#pragma unroll
      for (int k = 0; k < kUnderWay; ++k) {
        if (k < left) v[k] = cuda::get(part + k * step);
      }
#pragma unroll
      for (int k = 0; k < kUnderWay; ++k) sum += static_cast<double>(v[k]);
    }
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

}  // namespace plumb::cuda::layers
