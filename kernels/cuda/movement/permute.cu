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
  cuda::Steps of_rows, of_columns;    // with offsets in both
  int64_t count;                      // of tiles
  cuda::Divisor tiles, column_tiles;  // of a matrix, and of its rows
  cuda::Steps others;                 // with offsets in x and in y
};

// Where a tile's matrix begins, where in that the tile does, and how many rows and columns are left from there on.
template <class Word>
struct TileAt {
  const Word* x;
  Word* y;
  int64_t row, column;
  int rows, columns;

  __device__ TileAt(const TransposeArgs<Word>& a, int64_t tile) {
    int64_t of_x = 0, of_y = 0;
    a.others.move(a.tiles.divide(tile), of_x, of_y);
    row = a.column_tiles.divide(tile) * kTile, column = tile * kTile;
    x = a.x + of_x + row;
    y = a.y + of_y + column;
    rows = a.rows - row < kTile ? static_cast<int>(a.rows - row) : kTile;
    columns = a.columns - column < kTile ? static_cast<int>(a.columns - column) : kTile;
  }
  __device__ bool is_whole() const { return rows == kTile && columns == kTile; }
};

// What a tile's columns add to an offset in x, and its rows to one in y: multiples of a step,
struct Stepped {
  int64_t of_column, of_row;

  __device__ int64_t x(int column) const { return column * of_column; }
  __device__ int64_t y(int row) const { return row * of_row; }
};
// or what several dimensions come to, which is computed once for all of the tile.
struct Listed {
  int64_t of_column[kTile], of_row[kTile];

  __device__ int64_t x(int column) const { return of_column[column]; }
  __device__ int64_t y(int row) const { return of_row[row]; }
};

template <class Word>
struct TransposeShared {
  Word tile[kTile][kTile + 1];  // one more, so that a column's elements are in different banks
};

// Of a whole tile nothing is asked about each element, which would take longer than memory does.
template <bool kIsWhole, class Word, class Offsets>
__device__ void transpose_tile(const TileAt<Word>& at, const Offsets& of, TransposeShared<Word>& s) {
  const int lane = static_cast<int>(threadIdx.x % kTile), first = static_cast<int>(threadIdx.x / kTile);
  constexpr int kStep = static_cast<int>(kThreads) / kTile, kEach = kTile / kStep;
  if (kIsWhole || lane < at.rows) {
    const Word* const x = at.x + lane;
    Word v[kEach] = {};
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const int column = first + k * kStep;
      if (kIsWhole || column < at.columns) v[k] = cuda::get(x + of.x(column));
    }
#pragma unroll
    for (int k = 0; k < kEach; ++k) s.tile[first + k * kStep][lane] = v[k];
  }
  __syncthreads();
  if (kIsWhole || lane < at.columns) {
    Word* const y = at.y + lane;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const int row = first + k * kStep;
      if (kIsWhole || row < at.rows) cuda::put(y + of.y(row), s.tile[lane][row]);
    }
  }
  __syncthreads();
}

// Elements of two bytes, by pairs in x and in y: four elements change places in registers, and a pair in shared memory
// is of two columns.
struct PairsShared {
  uint32_t tile[2][kTile / 2][kTile / 2 + 1];  // by the row in its pair, the pair of rows, and the pair of columns
};

template <bool kIsWhole, class Offsets>
__device__ void transpose_tile(const TileAt<uint16_t>& at, const Offsets& of, PairsShared& s) {
  const int lane = static_cast<int>(threadIdx.x % cuda::kWarp), first = static_cast<int>(threadIdx.x / cuda::kWarp);
  constexpr int kStep = static_cast<int>(kThreads / cuda::kWarp), kEach = kTile / 2 / kStep;
  using Pair = uint32_t;
  if (kIsWhole || 2 * lane < at.rows) {
    const uint16_t* const x = at.x + 2 * lane;
    Pair v[kEach][2] = {};
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const int column = 2 * (first + k * kStep);
      if (!kIsWhole && column >= at.columns) continue;
      v[k][0] = cuda::get(reinterpret_cast<const Pair*>(x + of.x(column)));
      v[k][1] = cuda::get(reinterpret_cast<const Pair*>(x + of.x(column + 1)));
    }
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      s.tile[0][lane][first + k * kStep] = (v[k][0] & 0xffffu) | v[k][1] << 16;
      s.tile[1][lane][first + k * kStep] = v[k][0] >> 16 | (v[k][1] & 0xffff0000u);
    }
  }
  __syncthreads();
  if (kIsWhole || 2 * lane < at.columns) {
    uint16_t* const y = at.y + 2 * lane;
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
      const int row = 2 * (first + k * kStep);
      if (!kIsWhole && row >= at.rows) continue;
      cuda::put(reinterpret_cast<Pair*>(y + of.y(row)), s.tile[0][first + k * kStep][lane]);
      cuda::put(reinterpret_cast<Pair*>(y + of.y(row + 1)), s.tile[1][first + k * kStep][lane]);
    }
  }
  __syncthreads();
}

template <class Word, class Offsets, class Shared>
__device__ void transpose_tile(const TileAt<Word>& at, const Offsets& of, Shared& s) {
  at.is_whole() ? transpose_tile<true>(at, of, s) : transpose_tile<false>(at, of, s);
}
template <class Word, class Shared>
__device__ void transpose_stepped(const TransposeArgs<Word>& a, Shared& s) {
  const Stepped of{a.of_columns.x[0], a.of_rows.y[0]};
#pragma unroll 1
  for (int64_t tile = blockIdx.x; tile < a.count; tile += gridDim.x) {
    TileAt<Word> at(a, tile);
    at.x += at.column * of.of_column;
    at.y += at.row * of.of_row;
    transpose_tile(at, of, s);
  }
}
template <class Shared>
struct ListedShared {
  Shared tile;
  Listed of;
};
template <class Word, class Shared>
__device__ void transpose_listed(const TransposeArgs<Word>& a, ListedShared<Shared>& s) {
  static_assert(kThreads >= 2 * kTile);
  const int number = static_cast<int>(threadIdx.x % kTile);
#pragma unroll 1
  for (int64_t tile = blockIdx.x; tile < a.count; tile += gridDim.x) {
    const TileAt<Word> at(a, tile);
    int64_t of_x = 0, of_y = 0;
    if (threadIdx.x < kTile) {
      if (number < at.columns) a.of_columns.move(at.column + number, of_x, of_y);
      s.of.of_column[number] = of_x;
    } else if (threadIdx.x < 2 * kTile) {
      if (number < at.rows) a.of_rows.move(at.row + number, of_x, of_y);
      s.of.of_row[number] = of_y;
    }
    __syncthreads();
    transpose_tile(at, s.of, s.tile);
  }
}

template <class Word>
__global__ void __launch_bounds__(kThreads, cuda::kLeastBlocks) transpose_kernel(const TransposeArgs<Word> a) {
  transpose_stepped(a, cuda::shared<TransposeShared<Word>>());
}
__global__ void __launch_bounds__(kThreads, cuda::kLeastBlocks)
    transpose_pairs_kernel(const TransposeArgs<uint16_t> a) {
  transpose_stepped(a, cuda::shared<PairsShared>());
}
template <class Word>
__global__ void __launch_bounds__(kThreads, cuda::kFewBlocks) transpose_listed_kernel(const TransposeArgs<Word> a) {
  transpose_listed(a, cuda::shared<ListedShared<TransposeShared<Word>>>());
}
__global__ void __launch_bounds__(kThreads, cuda::kFewBlocks)
    transpose_listed_pairs_kernel(const TransposeArgs<uint16_t> a) {
  transpose_listed(a, cuda::shared<ListedShared<PairsShared>>());
}

// Whether every pair begins where an even number of elements does.
bool are_even(const int64_t (&steps)[kMaxRank], int rank, int from) {
  return std::all_of(steps + std::min(from, rank), steps + rank, [](int64_t step) { return step % 2 == 0; });
}
template <class Word>
bool is_of_pairs(const TransposeArgs<Word>& a) {
  const cuda::Steps &r = a.of_rows, &c = a.of_columns, &o = a.others;
  return r.extent[0].by % 2 == 0 && c.extent[0].by % 2 == 0 && are_even(r.x, r.rank, 1) && are_even(r.y, r.rank, 0) &&
         are_even(c.x, c.rank, 0) && are_even(c.y, c.rank, 1) && are_even(o.x, o.rank, 0) && are_even(o.y, o.rank, 0);
}

template <class Word>
void offer_transpose(const TransposeArgs<Word>& args, Device device, Candidates& candidates) {
  const bool is_listed = args.of_rows.rank > 1 || args.of_columns.rank > 1;
  cuda::offer(candidates, "transpose", "plumb:transpose", device, 1,
              [=, by_pairs = is_of_pairs(args)](const cuda::Queue& q, const Launch& l) {
                TransposeArgs<Word> now = args;
                now.x = static_cast<const Word*>(l.in[0]);
                now.y = static_cast<Word*>(l.out[0]);
                const cuda::Grid grid = cuda::grid_of(q.runtime(), now.count, kThreads);
                if constexpr (sizeof(Word) == 2) {
                  if (by_pairs) {
                    return is_listed ? q.launch<transpose_listed_pairs_kernel>(grid, now)
                                     : q.launch<transpose_pairs_kernel>(grid, now);
                  }
                }
                is_listed ? q.launch<transpose_listed_kernel<Word>>(grid, now)
                          : q.launch<transpose_kernel<Word>>(grid, now);
              });
}

// The dimensions along a side of a tile: those that follow each other without a gap in what `strides` are of, until
// there are enough for a tile.
struct Side {
  uint32_t has = 0;
  cuda::Steps steps;

  // Takes one more that the other side has not, if there is one.
  bool grow(const cuda::Steps& of, const int64_t (&strides)[kMaxRank], const Side& other) {
    if (steps.count >= kTile) return false;
    for (int d = 0; d < of.rank; ++d) {
      if (strides[d] != steps.count || ((has | other.has) >> d & 1)) continue;
      has |= 1u << d;
      steps.add(of.extent[d].by, of.x[d], of.y[d]);
      return true;
    }
    return false;
  }
};

template <class Word>
void offer(const Problem<PermuteParams>& p, Candidates& candidates) {
  const TensorSpec &x = p.in[0], &y = p.out[0];
  const Strides of_x = strides_of(x);
  Strides xs;
  for (int d = 0; d < y.rank(); ++d) xs.of[d] = of_x[p.params.dims[d]];
  const cuda::Steps steps(y, xs, strides_of(y));
  Side rows, columns;
  const auto grow = [&](bool is_row) {
    return is_row ? rows.grow(steps, steps.x, columns) : columns.grow(steps, steps.y, rows);
  };
  for (bool grows = grow(true) && grow(false); grows;) {
    const bool rows_are_fewer = rows.steps.count < columns.steps.count;
    grows = grow(rows_are_fewer) || grow(!rows_are_fewer);
  }
  constexpr int64_t kLeast = 8;  // of both sides, or the tile is mostly empty
  if (steps.count > 0 && rows.steps.count >= kLeast && columns.steps.count >= kLeast) {
    TransposeArgs<Word> args{};
    args.of_rows = rows.steps;
    args.of_columns = columns.steps;
    args.rows = rows.steps.count;
    args.columns = columns.steps.count;
    const int64_t row_tiles = (args.rows + kTile - 1) / kTile, column_tiles = (args.columns + kTile - 1) / kTile;
    args.tiles = cuda::Divisor(row_tiles * column_tiles);
    args.column_tiles = cuda::Divisor(column_tiles);
    for (int d = 0; d < steps.rank; ++d) {
      if (!((rows.has | columns.has) >> d & 1)) args.others.add(steps.extent[d].by, steps.x[d], steps.y[d]);
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
