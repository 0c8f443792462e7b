// Products by tiles: a block computes a tile of the result, a thread some rows by some columns of it in registers.
// Tiles of the operands pass through shared memory in two halves, so that one is filled while the other is read.
#include "kernels/cuda/gemm/gemm.h"

#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"

namespace plumb::cuda {

Axis::Axis(const Digit& a, const Digit& b, const Digit& c)
    : extent(a.extent * b.extent * c.extent),
      inner(std::max<int64_t>(1, a.extent)),
      middle(std::max<int64_t>(1, b.extent)),
      offset{a.offset, b.offset, c.offset},
      h{a.h, b.h, c.h},
      w{a.w, b.w, c.w} {}

void Batches::add(int64_t n, int64_t of_a, int64_t of_b, int64_t of_out, int64_t of_bias) {
  PLUMB_CHECK(rank < kMost, "matmul: more than {} dimensions of batches", kMost);
  extent[rank] = Divisor(std::max<int64_t>(1, n));
  a[rank] = of_a, b[rank] = of_b, out[rank] = of_out, bias[rank] = of_bias;
  count *= n;
  ++rank;
}

namespace {

constexpr int kThreads = 256;

// A tile of kRows by kColumns, of which a thread has kM by kN.
template <int kRowCount, int kColumnCount, int kRowsOfThread, int kColumnsOfThread>
struct Tile {
  static constexpr int kRows = kRowCount, kColumns = kColumnCount, kM = kRowsOfThread, kN = kColumnsOfThread;
  static constexpr int kBlocks = kM * kN > 4 ? 1 : 3;  // that a multiprocessor holds at least
  static_assert(kRows / kM * (kColumns / kN) == kThreads);
};
using Square = Tile<128, 64, 8, 4>;
using Small = Tile<32, 32, 2, 2>;
// Of an f64 tile half the depth fits into shared memory, and with it every thread brings an element at least.
template <class T>
inline constexpr bool kIsWide = sizeof(Compute<T>) == 8;
template <class T>
using Tall = std::conditional_t<kIsWide<T>, Tile<256, 32, 8, 4>, Tile<256, 16, 8, 2>>;
template <class T>
using Flat = std::conditional_t<kIsWide<T>, Tile<32, 256, 4, 8>, Tile<16, 256, 2, 8>>;
template <class T>
inline constexpr int kDepth = kIsWide<T> ? 8 : 16;

template <class T>
struct GemmArgs {
  Gemm g;
  const T *a, *b, *bias;
  T* out;
  Compute<T>* parts;  // sums over parts of the depth, if it is split: (part, batch, row, column)
  int splits;
  int64_t tiles_of_part;  // of depth
  Divisor column_tiles;
  int64_t tiles;
  Divisor of_one, columns;  // elements of a product, and of its rows: for the parts
};

template <class C, class Tile, int kDepthOfTile>
struct GemmShared {
  C a[2][kDepthOfTile][Tile::kRows];
  C b[2][kDepthOfTile][Tile::kColumns];
};

struct Place {
  int64_t offset;
  int32_t h, w;
};
__device__ inline Place place_of(const Axis& axis, int64_t index) {
  int64_t digit[3] = {index, 0, 0};
  digit[1] = axis.inner.divide(digit[0]);
  digit[2] = axis.middle.divide(digit[1]);
  Place p{0, 0, 0};
  for (int i = 0; i < 3; ++i) {
    p.offset += digit[i] * axis.offset[i];
    p.h += static_cast<int32_t>(digit[i]) * axis.h[i];
    p.w += static_cast<int32_t>(digit[i]) * axis.w[i];
  }
  return p;
}

// An element by its places in row and depth, or zero outside of the image.
template <class T>
__device__ Compute<T> element(const Operand& o, const T* data, const Place& row, const Place& depth) {
  int64_t at = row.offset + depth.offset;
  if (o.is_image) {
    int32_t h = row.h + depth.h + o.first_h, w = row.w + depth.w + o.first_w;
    if (h < 0 || w < 0) return 0;
    if (o.step_h > 1) {
      if (h % o.step_h != 0) return 0;
      h /= o.step_h;
    }
    if (o.step_w > 1) {
      if (w % o.step_w != 0) return 0;
      w /= o.step_w;
    }
    if (h >= o.image_h || w >= o.image_w) return 0;
    at += h * o.stride_h + w * o.stride_w;
  }
  return load(data + at);
}

// The part of a tile of one operand that a thread brings: kCount elements, whose rows are the same in every tile.
template <class T, int kExtent, int kDepthOfTile>
struct Carrier {
  static constexpr int kCount = kExtent * kDepthOfTile / kThreads;
  static_assert(kCount * kThreads == kExtent * kDepthOfTile);
  Place rows[kCount];
  bool is_inside[kCount];
  Compute<T> values[kCount];

  __device__ static int row_of(const Operand& o, int i) {
    const int at = static_cast<int>(threadIdx.x) + i * kThreads;
    return o.is_depth_first ? at / kDepthOfTile : at % kExtent;
  }
  __device__ static int depth_of(const Operand& o, int i) {
    const int at = static_cast<int>(threadIdx.x) + i * kThreads;
    return o.is_depth_first ? at % kDepthOfTile : at / kExtent;
  }
  __device__ void begin(const Operand& o, int64_t first_row) {
    for (int i = 0; i < kCount; ++i) {
      const int64_t row = first_row + row_of(o, i);
      is_inside[i] = row < o.row.extent;
      rows[i] = is_inside[i] ? place_of(o.row, row) : Place{0, 0, 0};
    }
  }
  __device__ void take(const Operand& o, const T* data, int64_t first_depth) {
    for (int i = 0; i < kCount; ++i) {
      const int64_t depth = first_depth + depth_of(o, i);
      values[i] = is_inside[i] && depth < o.depth.extent ? element(o, data, rows[i], place_of(o.depth, depth)) : 0;
    }
  }
  __device__ void put(const Operand& o, Compute<T> (&to)[kDepthOfTile][kExtent]) const {
    for (int i = 0; i < kCount; ++i) to[depth_of(o, i)][row_of(o, i)] = values[i];
  }
};

struct Begin {
  int64_t a, b, out, bias;
};
__device__ inline Begin begin_of(const Batches& batches, int64_t batch) {
  Begin at{0, 0, 0, 0};
  for (int d = 0; d < batches.rank; ++d) {
    int64_t index = batch;
    batch = batches.extent[d].divide(index);
    at.a += index * batches.a[d];
    at.b += index * batches.b[d];
    at.out += index * batches.out[d];
    at.bias += index * batches.bias[d];
  }
  return at;
}

// Bias and activation, and to its place.
template <class T>
__device__ void finish(const GemmArgs<T>& a, const Begin& at, int64_t row, int64_t column, Compute<T> v) {
  if (a.bias) v += load(a.bias + at.bias + row);
  if (a.g.relu && v < 0) v = 0;
  int64_t inner = column;
  const int64_t outer = a.g.column_inner.divide(inner);
  store(a.out + at.out + row * a.g.row_stride + inner * a.g.column_stride[0] + outer * a.g.column_stride[1], v);
}

template <class T, class Tile>
__global__ void __launch_bounds__(kThreads, Tile::kBlocks) gemm_kernel_of(const GemmArgs<T> args) {
  using C = Compute<T>;
  constexpr int kK = kDepth<T>, kM = Tile::kM, kN = Tile::kN;
  auto& s = shared<GemmShared<C, Tile, kK>>();
  const Gemm& g = args.g;
  const int thread_row = static_cast<int>(threadIdx.x) / (Tile::kColumns / kN) * kM;
  const int thread_column = static_cast<int>(threadIdx.x) % (Tile::kColumns / kN) * kN;
  int64_t column_tile = blockIdx.x;
  const int64_t row_tile = args.column_tiles.divide(column_tile);
  const int64_t first_row = row_tile * Tile::kRows, first_column = column_tile * Tile::kColumns;
  const int64_t first_tile = int64_t{blockIdx.y} * args.tiles_of_part;
  const int64_t end_tile = first_tile + args.tiles_of_part < args.tiles ? first_tile + args.tiles_of_part : args.tiles;

  Carrier<T, Tile::kRows, kK> from_a;
  Carrier<T, Tile::kColumns, kK> from_b;
  from_a.begin(g.a, first_row);
  from_b.begin(g.b, first_column);
#pragma unroll 1
  for (int64_t batch = blockIdx.z; batch < g.batches.count; batch += gridDim.z) {
    const Begin at = begin_of(g.batches, batch);
    const T *const a = args.a + at.a + g.a.first, *const b = args.b + at.b + g.b.first;
    C sum[kM][kN] = {};
    int half = 0;
    const auto take = [&](int64_t tile) {
      from_a.take(g.a, a, tile * kK);
      from_b.take(g.b, b, tile * kK);
    };
    const auto put = [&](int to) {
      from_a.put(g.a, s.a[to]);
      from_b.put(g.b, s.b[to]);
    };
    if (first_tile < end_tile) {
      take(first_tile);
      put(half);
    }
    __syncthreads();
    for (int64_t tile = first_tile; tile < end_tile; ++tile, half ^= 1) {
      const bool has_next = tile + 1 < end_tile;
      if (has_next) take(tile + 1);
      for (int k = 0; k < kK; ++k) {
        C x[kM], y[kN];
        for (int i = 0; i < kM; ++i) x[i] = s.a[half][k][thread_row + i];
        for (int j = 0; j < kN; ++j) y[j] = s.b[half][k][thread_column + j];
        for (int i = 0; i < kM; ++i) {
          for (int j = 0; j < kN; ++j) sum[i][j] += x[i] * y[j];
        }
      }
      if (has_next) put(half ^ 1);
      __syncthreads();
    }
    for (int i = 0; i < kM; ++i) {
      const int64_t row = first_row + thread_row + i;
      for (int j = 0; j < kN; ++j) {
        const int64_t column = first_column + thread_column + j;
        if (row >= g.rows() || column >= g.columns()) continue;
        if (args.splits == 1) {
          finish(args, at, row, column, sum[i][j]);
        } else {
          const int64_t part = int64_t{blockIdx.y} * g.batches.count + batch;
          cuda::put(args.parts + (part * g.rows() + row) * g.columns() + column, sum[i][j]);
        }
      }
    }
  }
}

// The parts of a split depth together, in their order.
template <class T>
__global__ void __launch_bounds__(kThreads) gemm_parts_kernel(const GemmArgs<T> a) {
  const Gemm& g = a.g;
  const int64_t n = g.batches.count * a.of_one.by;
#pragma unroll 1
  for (int64_t i = thread_of_grid(); i < n; i += threads_of_grid()) {
    Compute<T> sum = get(a.parts + i);
    for (int part = 1; part < a.splits; ++part) sum += get(a.parts + part * n + i);
    int64_t at = i;
    const int64_t batch = a.of_one.divide(at);
    int64_t column = at;
    const int64_t row = a.columns.divide(column);
    finish(a, begin_of(g.batches, batch), row, column, sum);
  }
}

int64_t tiles_over(int64_t n, int64_t tile) { return (n + tile - 1) / tile; }

struct Work {
  int64_t row_tiles, column_tiles, blocks;
  double cost;  // of a unit of depth, in multiplications
};
template <class Tile>
Work work_of(const Gemm& g, int multiprocessors) {
  Work w{tiles_over(g.rows(), Tile::kRows), tiles_over(g.columns(), Tile::kColumns), 0, 0};
  w.blocks = w.row_tiles * w.column_tiles * g.batches.count;
  constexpr double kBring = 24;  // what bringing an element costs
  const double of_tile = Tile::kRows * Tile::kColumns + kBring * (Tile::kRows + Tile::kColumns);
  w.cost = static_cast<double>(tiles_over(w.blocks, multiprocessors)) * of_tile;
  return w;
}

// What gemm_parts_kernel reads but for where things lie.
template <class T>
GemmArgs<T> parts_of(const Gemm& gemm) {
  GemmArgs<T> args{};
  args.g = gemm;
  args.splits = 1;
  args.of_one = Divisor(gemm.rows() * gemm.columns());
  args.columns = Divisor(gemm.columns());
  return args;
}

template <class T, class Tile>
std::unique_ptr<Kernel> make(const char* name, Device device, const Gemm& gemm, int a, int b, int bias) {
  const Runtime& runtime = runtime_of(device);
  const Work work = work_of<Tile>(gemm, runtime.properties().multiprocessors);
  GemmArgs<T> args = parts_of<T>(gemm);
  args.column_tiles = Divisor(work.column_tiles);
  args.tiles = tiles_over(gemm.depth(), kDepth<T>);
  // Few tiles of a long sum would leave most of the device idle: it is split, and the parts are added in their order.
  // So is a very long one in f32, which would lose the digits of each term, as far as the parts are not too large.
  constexpr int64_t kLeastTiles = 16, kLong = (16 << 10) / kDepth<T>, kMostSplits = 512, kMostBytes = 256 << 20;
  const int64_t fills = int64_t{2} * runtime.properties().multiprocessors / std::max<int64_t>(1, work.blocks);
  const int64_t outputs = gemm.rows() * gemm.columns() * gemm.batches.count;
  const int64_t room = kMostBytes / (static_cast<int64_t>(sizeof(Compute<T>)) * std::max<int64_t>(1, outputs));
  const bool is_long = std::is_same_v<Compute<T>, float> && args.tiles > kLong;
  const int64_t wanted = std::max(fills, is_long ? std::min(room, 4 * args.tiles / kLong) : 0);
  const int64_t possible = std::max<int64_t>(1, std::min({wanted, args.tiles / kLeastTiles, kMostSplits}));
  args.tiles_of_part = std::max<int64_t>(1, tiles_over(args.tiles, possible));
  args.splits = static_cast<int>(std::max<int64_t>(1, tiles_over(args.tiles, args.tiles_of_part)));
  const int64_t blocks = work.row_tiles * work.column_tiles;
  PLUMB_CHECK(blocks <= std::numeric_limits<int32_t>::max(), "{}: {} rows by {} columns are more than a launch takes",
              name, gemm.rows(), gemm.columns());
  const int64_t most_batches = runtime.properties().is_gpu() ? 65535 : 2;  // at once; few, as in grid_of
  const Grid grid{{static_cast<unsigned>(blocks), static_cast<unsigned>(args.splits),
                   static_cast<unsigned>(std::min(gemm.batches.count, most_batches))},
                  {kThreads}};
  const bool is_split = args.splits > 1;
  auto kernel = own(name, device, is_split ? 2 : 1, [=](const Queue& q, const Launch& l) {
    GemmArgs<T> now = args;
    now.a = static_cast<const T*>(l.in[a]);
    now.b = static_cast<const T*>(l.in[b]);
    now.bias = bias < 0 ? nullptr : static_cast<const T*>(l.in[bias]);
    now.out = static_cast<T*>(l.out[0]);
    now.parts = static_cast<Compute<T>*>(l.workspace);
    q.launch<gemm_kernel_of<T, Tile>>(grid, now);
    if (is_split) q.launch<gemm_parts_kernel<T>>(grid_over(q.runtime(), outputs, kThreads), now);
  });
  if (is_split)
    kernel->info().workspace_bytes =
        static_cast<size_t>(outputs) * static_cast<size_t>(args.splits) * sizeof(Compute<T>);
  return kernel;
}

}  // namespace

std::unique_ptr<Kernel> gemm_kernel(const char* name, Device device, DType dtype, const Gemm& gemm, int a, int b,
                                    int bias) {
  const int multiprocessors = runtime_of(device).properties().multiprocessors;
  std::unique_ptr<Kernel> kernel;
  dispatch_compute(dtype, [&]<class T>() {
    const double costs[] = {work_of<Square>(gemm, multiprocessors).cost, work_of<Tall<T>>(gemm, multiprocessors).cost,
                            work_of<Flat<T>>(gemm, multiprocessors).cost, work_of<Small>(gemm, multiprocessors).cost};
    const auto best = std::min_element(std::begin(costs), std::end(costs)) - std::begin(costs);
    switch (best) {
      case 0: kernel = make<T, Square>(name, device, gemm, a, b, bias); break;
      case 1: kernel = make<T, Tall<T>>(name, device, gemm, a, b, bias); break;
      case 2: kernel = make<T, Flat<T>>(name, device, gemm, a, b, bias); break;
      default: kernel = make<T, Small>(name, device, gemm, a, b, bias);
    }
  });
  return kernel;
}

std::unique_ptr<Kernel> gemm_ending(const char* name, Device device, DType dtype, const Gemm& gemm, int bias) {
  std::unique_ptr<Kernel> kernel;
  dispatch_compute(dtype, [&]<class T>() {
    const int64_t outputs = gemm.rows() * gemm.columns() * gemm.batches.count;
    kernel = own(name, device, 1, [=, args = parts_of<T>(gemm)](const Queue& q, const Launch& l) {
      GemmArgs<T> now = args;
      now.bias = bias < 0 ? nullptr : static_cast<const T*>(l.in[bias]);
      now.out = static_cast<T*>(l.out[0]);
      now.parts = static_cast<Compute<T>*>(l.workspace);
      q.launch<gemm_parts_kernel<T>>(grid_over(q.runtime(), outputs, kThreads), now);
    });
  });
  return kernel;
}

}  // namespace plumb::cuda
