// Reordering elements, and repeating them. Where the innermost dimension of the result is another than that of x, tiles
// go through shared memory, so that both are read and written along their rows.
#include "kernels/permute.h"

#include "kernels/cpu/strided.h"
#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/lines.h"
#include "kernels/reduce.h"

namespace plumb {
namespace {

constexpr unsigned kThreads = 256;
constexpr int kTile = 32;

template <class Word>
struct GatherArgs {
  const Word* x;
  Word* y;
  cuda::Steps steps;  // of y in memory order, with the offsets in x
};

template <class Word>
__global__ void __launch_bounds__(kThreads) gather_kernel(const GatherArgs<Word> a) {
  cuda::for_scattered<Word>(
      a.steps.count, [&](int64_t i) { return cuda::get(a.x + a.steps.of_x(i)); },
      [&](int64_t i, Word v) { cuda::put(a.y + i, v); });
}

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
template <class Word>
struct TransposeShared {
  Word tile[kTile][kTile + 1];  // one more, so that a column's elements are in different banks
};

template <class Word>
__global__ void __launch_bounds__(kThreads) transpose_kernel(const TransposeArgs<Word> a) {
  auto& s = cuda::shared<TransposeShared<Word>>();
  const int lane = static_cast<int>(threadIdx.x % kTile), first = static_cast<int>(threadIdx.x / kTile);
  constexpr int kStep = static_cast<int>(kThreads) / kTile;
#pragma unroll 1
  for (int64_t block = blockIdx.x; block < a.count; block += gridDim.x) {
    int64_t x = 0, y = 0;
    int64_t tile = block;
    a.others.move(a.tiles.divide(tile), x, y);
    int64_t column_tile = tile;
    const int64_t row = a.column_tiles.divide(column_tile) * kTile, column = column_tile * kTile;
#pragma unroll
    for (int k = 0; k < kTile / kStep; ++k) {
      const int i = first + k * kStep;
      if (row + lane < a.rows && column + i < a.columns)
        s.tile[i][lane] = cuda::get(a.x + x + row + lane + (column + i) * a.column_x);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kTile / kStep; ++k) {
      const int i = first + k * kStep;
      if (row + i < a.rows && column + lane < a.columns)
        cuda::put(a.y + y + column + lane + (row + i) * a.row_y, s.tile[lane][i]);
    }
    __syncthreads();
  }
}

template <class Word>
void offer_gather(const char* name, const cuda::Steps& steps, Device device, Candidates& candidates) {
  cuda::offer(candidates, "loop", name, device, 1, [=](const cuda::Queue& q, const Launch& l) {
    q.launch<gather_kernel<Word>>(
        cuda::grid_over(q.runtime(), steps.count, kThreads),
        GatherArgs<Word>{static_cast<const Word*>(l.in[0]), static_cast<Word*>(l.out[0]), steps});
  });
}

template <class Word>
void offer_transpose(const TransposeArgs<Word>& args, Device device, Candidates& candidates) {
  cuda::offer(candidates, "transpose", "plumb:transpose", device, 1, [=](const cuda::Queue& q, const Launch& l) {
    TransposeArgs<Word> now = args;
    now.x = static_cast<const Word*>(l.in[0]);
    now.y = static_cast<Word*>(l.out[0]);
    q.launch<transpose_kernel<Word>>(cuda::grid_of(q.runtime(), now.count, kThreads), now);
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
  offer_gather<Word>("plumb:permute", steps, p.device, candidates);
}

}  // namespace

void Permute::cuda(const Problem<Params>& p, Candidates& c) {
  cuda::dispatch_size(size_of(p.out[0].dtype), [&]<class Word>() { offer<Word>(p, c); });
}

void Expand::cuda(const Problem<NoParams>& p, Candidates& c) {
  const TensorSpec& y = p.out[0];
  const cuda::Steps steps(y, cpu::broadcast_strides(p.in[0], y.shape));
  cuda::dispatch_size(size_of(y.dtype), [&]<class Word>() { offer_gather<Word>("plumb:expand", steps, p.device, c); });
}

}  // namespace plumb
