// Reordering elements, and repeating them. Where the innermost dimension of the result is another than that of x, tiles
// go through shared memory, so that both are read and written along their rows.
#include "kernels/permute.h"

#include "kernels/cpu/strided.h"
#include "kernels/cuda/movement/gather.cuh"
#include "kernels/reduce.h"

namespace plumb {
namespace {

constexpr unsigned kThreads = 256;
constexpr int kTile = 64;

// Matrices whose rows lie next to each other in y and whose columns do in x, and the other dimensions around them.
template <class Word>
struct TransposeArgs {
  const Word* x;
  Word* y;
  int64_t rows, columns;              // columns are next to each other in y, rows in x
  int64_t column_x, row_y;            // what one more adds
  int64_t count;                      // of tiles
  cuda::Divisor tiles, column_tiles;  // of a matrix, and of its rows
  cuda::Steps others;                 // with offsets in x and in y
};

// Where a thread begins in a tile, and how many rows and columns are left of the matrix from the tile's first on.
template <class Word>
struct TileAt {
  const Word* x;
  Word* y;
  int rows, columns;

  __device__ TileAt(const TransposeArgs<Word>& a, int64_t tile) {
    int64_t of_x = 0, of_y = 0;
    a.others.move(a.tiles.divide(tile), of_x, of_y);
    const int64_t row = a.column_tiles.divide(tile) * kTile, column = tile * kTile;
    x = a.x + of_x + row + column * a.column_x;
    y = a.y + of_y + column + row * a.row_y;
    rows = a.rows - row < kTile ? static_cast<int>(a.rows - row) : kTile;
    columns = a.columns - column < kTile ? static_cast<int>(a.columns - column) : kTile;
  }
};

template <class Word>
struct TransposeShared {
  Word tile[kTile][kTile + 1];  // one more, so that a column's elements are in different banks
};

// Of a whole tile nothing is asked about each element, which would take longer than memory does.
template <bool kIsWhole, class Word>
__device__ void transpose_tile(const TransposeArgs<Word>& a, const TileAt<Word>& at, TransposeShared<Word>& s) {
  const int lane = static_cast<int>(threadIdx.x % kTile), first = static_cast<int>(threadIdx.x / kTile);
  constexpr int kStep = static_cast<int>(kThreads) / kTile, kEach = kTile / kStep;
  if (kIsWhole || lane < at.rows) {
    const Word* x = at.x + lane + first * a.column_x;
    Word v[kEach] = {};
#pragma unroll
    for (int k = 0; k < kEach; ++k, x += kStep * a.column_x) {
      if (kIsWhole || first + k * kStep < at.columns) v[k] = cuda::get(x);
    }
#pragma unroll
    for (int k = 0; k < kEach; ++k) s.tile[first + k * kStep][lane] = v[k];
  }
  __syncthreads();
  if (kIsWhole || lane < at.columns) {
    Word* y = at.y + lane + first * a.row_y;
#pragma unroll
    for (int k = 0; k < kEach; ++k, y += kStep * a.row_y) {
      if (kIsWhole || first + k * kStep < at.rows) cuda::put(y, s.tile[lane][first + k * kStep]);
    }
  }
  __syncthreads();
}

// Elements of two bytes, by pairs in x and in y: four elements change places in registers, and a pair in shared memory
// is of two columns.
struct PairsShared {
  uint32_t tile[2][kTile / 2][kTile / 2 + 1];  // by the row in its pair, the pair of rows, and the pair of columns
};

template <bool kIsWhole>
__device__ void transpose_tile(const TransposeArgs<uint16_t>& a, const TileAt<uint16_t>& at, PairsShared& s) {
  const int lane = static_cast<int>(threadIdx.x % cuda::kWarp), first = static_cast<int>(threadIdx.x / cuda::kWarp);
  constexpr int kStep = static_cast<int>(kThreads / cuda::kWarp), kEach = kTile / 2 / kStep;
  using Pair = uint32_t;
  if (kIsWhole || 2 * lane < at.rows) {
    const uint16_t* x = at.x + 2 * lane + 2 * first * a.column_x;
    Pair v[kEach][2] = {};
#pragma unroll
    for (int k = 0; k < kEach; ++k, x += 2 * kStep * a.column_x) {
      if (!kIsWhole && 2 * (first + k * kStep) >= at.columns) continue;
      v[k][0] = cuda::get(reinterpret_cast<const Pair*>(x));
      v[k][1] = cuda::get(reinterpret_cast<const Pair*>(x + a.column_x));
    }
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      s.tile[0][lane][first + k * kStep] = (v[k][0] & 0xffffu) | v[k][1] << 16;
      s.tile[1][lane][first + k * kStep] = v[k][0] >> 16 | (v[k][1] & 0xffff0000u);
    }
  }
  __syncthreads();
  if (kIsWhole || 2 * lane < at.columns) {
    uint16_t* y = at.y + 2 * lane + 2 * first * a.row_y;
#pragma unroll
    for (int k = 0; k < kEach; ++k, y += 2 * kStep * a.row_y) {
      if (!kIsWhole && 2 * (first + k * kStep) >= at.rows) continue;
      cuda::put(reinterpret_cast<Pair*>(y), s.tile[0][first + k * kStep][lane]);
      cuda::put(reinterpret_cast<Pair*>(y + a.row_y), s.tile[1][first + k * kStep][lane]);
    }
  }
  __syncthreads();
}

template <class Word, class Shared>
__device__ void transpose_tiles(const TransposeArgs<Word>& a, Shared& s) {
#pragma unroll 1
  for (int64_t tile = blockIdx.x; tile < a.count; tile += gridDim.x) {
    const TileAt<Word> at(a, tile);
    if (at.rows == kTile && at.columns == kTile) {
      transpose_tile<true>(a, at, s);
    } else {
      transpose_tile<false>(a, at, s);
    }
  }
}
template <class Word>
__global__ void __launch_bounds__(kThreads, cuda::kLeastBlocks) transpose_kernel(const TransposeArgs<Word> a) {
  transpose_tiles(a, cuda::shared<TransposeShared<Word>>());
}
__global__ void __launch_bounds__(kThreads, cuda::kLeastBlocks)
    transpose_pairs_kernel(const TransposeArgs<uint16_t> a) {
  transpose_tiles(a, cuda::shared<PairsShared>());
}

// Whether every pair begins where an even number of elements does.
template <class Word>
bool is_of_pairs(const TransposeArgs<Word>& a) {
  bool is = a.rows % 2 == 0 && a.columns % 2 == 0 && a.column_x % 2 == 0 && a.row_y % 2 == 0;
  for (int d = 0; d < a.others.rank; ++d) is = is && a.others.x[d] % 2 == 0 && a.others.y[d] % 2 == 0;
  return is;
}

template <class Word>
void offer_transpose(const TransposeArgs<Word>& args, Device device, Candidates& candidates) {
  cuda::offer(candidates, "transpose", "plumb:transpose", device, 1,
              [=, by_pairs = is_of_pairs(args)](const cuda::Queue& q, const Launch& l) {
                TransposeArgs<Word> now = args;
                now.x = static_cast<const Word*>(l.in[0]);
                now.y = static_cast<Word*>(l.out[0]);
                const cuda::Grid grid = cuda::grid_of(q.runtime(), now.count, kThreads);
                if constexpr (sizeof(Word) == 2) {
                  if (by_pairs) return q.launch<transpose_pairs_kernel>(grid, now);
                }
                q.launch<transpose_kernel<Word>>(grid, now);
              });
}

template <class Word>
void offer(const Problem<PermuteParams>& p, Candidates& candidates) {
  const TensorSpec &x = p.in[0], &y = p.out[0];
  const Strides of_x = strides_of(x);
  Strides xs;
  for (int d = 0; d < y.rank(); ++d) xs.of[d] = of_x[p.params.dims[d]];
  const cuda::Steps steps(y, xs, strides_of(y));
  // The dimension along which x goes on by one, among those of y that are left after merging.
  int inner = -1;
  for (int d = 0; d < steps.rank; ++d) {
    if (steps.x[d] == 1) inner = d;
  }
  constexpr int64_t kLeast = 8;  // of both sides, or the tile is mostly empty
  if (steps.count > 0 && inner > 0 && steps.extent[inner].by >= kLeast && steps.extent[0].by >= kLeast) {
    TransposeArgs<Word> args{};
    args.rows = steps.extent[inner].by;
    args.columns = steps.extent[0].by;
    args.column_x = steps.x[0];
    args.row_y = steps.y[inner];
    const int64_t row_tiles = (args.rows + kTile - 1) / kTile, column_tiles = (args.columns + kTile - 1) / kTile;
    args.tiles = cuda::Divisor(row_tiles * column_tiles);
    args.column_tiles = cuda::Divisor(column_tiles);
    for (int d = 1; d < steps.rank; ++d) {
      if (d != inner) args.others.add(steps.extent[d].by, steps.x[d], steps.y[d]);
    }
    args.count = row_tiles * column_tiles * args.others.count;
    offer_transpose(args, p.device, candidates);
  }
  cuda::offer_gather<Word>("plumb:permute", steps, 0, p.device, candidates);
}

}  // namespace

void Permute::cuda(const Problem<Params>& p, Candidates& c) {
  cuda::dispatch_size(size_of(p.out[0].dtype), [&]<class Word>() { offer<Word>(p, c); });
}

void Expand::cuda(const Problem<NoParams>& p, Candidates& c) {
  const TensorSpec& y = p.out[0];
  const cuda::Steps steps(y, cpu::broadcast_strides(p.in[0], y.shape), strides_of(y));
  cuda::dispatch_size(size_of(y.dtype),
                      [&]<class Word>() { cuda::offer_gather<Word>("plumb:expand", steps, 0, p.device, c); });
}

}  // namespace plumb
