#include "kernels/cpu/gemm/packed_gemm.h"

#include <array>
#include <utility>

#include "core/memory.h"
#include "kernels/cpu/movement/transpose_tiles.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd.h"

namespace plumb::cpu {
namespace {

using simd::kLanes;
using simd::Vec;

// A block of c in registers, beside a row of b and an element of a: kRows x kColumns.
constexpr int kVectors = 2, kRows = (simd::kRegisters - kVectors - 1) / kVectors;
constexpr int64_t kColumns = kVectors * kLanes;

// How much of a matrix is packed at once. A panel of b (kColumns wide) takes half of a first-level cache and a block of
// a (kBlock high) half of a second-level one; the panels of b share the last level.
constexpr int64_t kDepth = (int64_t{16} << 10) / (4 * kColumns);
constexpr int64_t kBlock = (int64_t{192} << 10) / (4 * kDepth) / kRows * kRows;
constexpr int64_t kMostColumns = (int64_t{4} << 20) / (4 * kDepth) / kColumns * kColumns;

// With fewer multiplications than this, a thread has less work than it costs to wake it.
constexpr int64_t kGrain = 1 << 18;
// With fewer panels of a than this, threads rather share the columns.
constexpr int64_t kLeastPanels = 4;

// An operand: the element at depth i of line j (a row of a, a column of b) is at[i * depth_step + j * line_step]. One of
// the steps is 1.
struct Operand {
  const float* at;
  int64_t depth_step, line_step;
};

// Packs lines at a range of depths: W lines a panel, those of one depth side by side, zeros for lines that do not exist.
template <int W>
class PanelPacker {
 public:
  PanelPacker(const Operand& x, Range depths, int64_t lines) : x_(x), depths_(depths), lines_(lines) {}

  /// Packs W lines, or those that are left, from `line` on.
  void pack(float* to, int64_t line) const {
    const float* from = x_.at + line * x_.line_step + depths_.begin * x_.depth_step;
    x_.line_step == 1 ? copy(to, from, lines_ - line) : transpose(to, from, lines_ - line);
  }

 private:
  static constexpr int kParts = static_cast<int>(simd::vectors_of(W));

  void copy(float* to, const float* from, int64_t lines) const {
    const bool whole = lines >= kParts * kLanes;
    for (int64_t i = 0; i < depths_.size(); ++i, from += x_.depth_step) {
      Vec row[kParts];
      for (int v = 0; v < kParts; ++v) {
        const float* part = from + v * kLanes;
        row[v] = whole ? simd::load(part) : simd::load(part, std::clamp<int64_t>(std::min<int64_t>(lines, W) - v * kLanes, 0, kLanes));
      }
      store_row(to, i, row);
    }
  }
  void transpose(float* to, const float* from, int64_t lines) const {
    for (int64_t i = 0; i < depths_.size(); i += kLanes, from += kLanes) {
      const int64_t n = std::min(kLanes, depths_.size() - i);
      tiles::TileRow<uint32_t> tile[kParts][kLanes] = {};
#pragma GCC unroll 4
      for (int v = 0; v < kParts; ++v) {
#pragma GCC unroll 16
        for (int64_t j = 0; j < kLanes; ++j) {
          if (v * kLanes + j >= std::min<int64_t>(lines, W)) break;
          const float* line = from + (v * kLanes + j) * x_.line_step;
          tile[v][j] = std::bit_cast<tiles::TileRow<uint32_t>>(n == kLanes ? simd::load(line) : simd::load(line, n));
        }
        tiles::transpose_blocks<uint32_t, kLanes / 2>(tile[v]);
      }
      for (int64_t j = 0; j < n; ++j) {
        Vec row[kParts];
        for (int v = 0; v < kParts; ++v) row[v] = std::bit_cast<Vec>(tile[v][j]);
        store_row(to, i + j, row);
      }
    }
  }
  // Stores whole vectors, whose rest the next row overwrites; the last row has none.
  void store_row(float* to, int64_t i, const Vec* row) const {
    for (int v = 0; v < kParts; ++v) {
      float* p = to + i * W + v * kLanes;
      const bool whole = (v + 1) * kLanes <= W || i + 1 < depths_.size();
      whole ? simd::store(p, row[v]) : simd::store(p, row[v], W - v * kLanes);
    }
  }

  Operand x_;
  Range depths_;
  int64_t lines_;
};

// Where a block of c goes, and what happens to it there.
struct Target {
  float* c;
  int64_t step;       // from row to row
  const float* bias;  // of the block's columns, or null
  bool first, last;   // whether c has no sums yet; whether this completes them
  bool relu;
};

template <int R, int V>
void multiply_block(int64_t depth, const float* a, const float* b, const Target& to) {
  Vec sum[R][V];
#pragma GCC unroll 2
  for (int v = 0; v < V; ++v) {
    const Vec start = to.bias ? simd::load(to.bias + v * kLanes) : Vec{};
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) sum[r][v] = to.first ? start : simd::load(to.c + r * to.step + v * kLanes);
  }
#pragma GCC unroll 2
  for (int64_t i = 0; i < depth; ++i, a += kRows, b += kColumns) {
    Vec row[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) row[v] = simd::load(b + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vec element = a[r] - Vec{};
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) sum[r][v] += element * row[v];
    }
  }
  const auto put = [&](auto done) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) simd::store(to.c + r * to.step + v * kLanes, done(sum[r][v]));
    }
  };
  to.relu && to.last ? put([](Vec y) { return simd::relu(y); }) : put([](Vec y) { return y; });
}

using MultiplyBlock = void (*)(int64_t depth, const float* a, const float* b, const Target& to);
template <int V, int... rows>
constexpr std::array<MultiplyBlock, sizeof...(rows)> blocks_of(std::integer_sequence<int, rows...>) {
  return {&multiply_block<rows + 1, V>...};
}
// Indexed by the number of rows - 1.
template <int V>
constexpr auto kBlocks = blocks_of<V>(std::make_integer_sequence<int, kRows>());

// How a product is cut: into parts of its depth and, in each, into tasks for threads: blocks of a by ranges of b's panels.
struct Cut {
  int64_t m, n, k;
  int64_t parts;                    // of the depth
  int64_t wide;                     // columns of b that are packed at once; whole panels
  int64_t row_tasks, column_tasks;  // that many at once
  int team;                         // threads

  Cut(int64_t rows, int64_t columns, int64_t depth, int threads) : m(rows), n(columns), k(depth) {
    team = static_cast<int>(std::clamp<int64_t>(m * n * k / kGrain, 1, threads));
    parts = ceil_div(k, kDepth);
    wide = std::min(ceil_div(n, kColumns) * kColumns, kMostColumns);
    const int64_t split = std::min<int64_t>(team, ceil_div(panels(), kLeastPanels)), blocks = ceil_div(m, kBlock);
    row_tasks = ceil_div(blocks, split) * split;
    column_tasks = std::clamp<int64_t>(team / row_tasks, 1, wide / kColumns);
  }
  int64_t panels() const { return ceil_div(m, kRows); }
  int64_t floats_of_a() const { return ceil_div(panels(), row_tasks) * kRows * ceil_div(k, parts); }
  int64_t floats_of_b() const { return wide * ceil_div(k, parts); }
};

struct Operands {
  Operand a, b;
  const float* bias;
  float* c;
};

class Multiplication {
 public:
  Multiplication(const Cut& cut, const Operands& x, bool relu, float* packed_a, float* packed_b)
      : cut_(cut), x_(x), relu_(relu), a_(packed_a), b_(packed_b) {}

  void run() const {
    for (int64_t first = 0; first < cut_.n; first += cut_.wide) {
      const Range columns{first, std::min(cut_.n, first + cut_.wide)};
      for (int64_t part = 0; part < cut_.parts; ++part) {
        pack_b(columns, piece(cut_.k, part, cut_.parts));
        multiply(columns, piece(cut_.k, part, cut_.parts));
      }
    }
  }

 private:
  void pack_b(Range columns, Range depths) const {
    const int64_t panels = ceil_div(columns.size(), kColumns);
    parallel_team(static_cast<int>(std::min<int64_t>(cut_.team, panels)), [&](int t, int team) {
      const Range mine = piece(panels, t, team);
      const PanelPacker<kColumns> packer(x_.b, depths, cut_.n);
      for (int64_t p = mine.begin; p < mine.end; ++p) {
        packer.pack(b_ + p * depths.size() * kColumns, columns.begin + p * kColumns);
      }
    });
  }
  void pack_a(float* a, Range rows, Range depths) const {
    const PanelPacker<kRows> packer(x_.a, depths, cut_.m);
    for (int64_t i = rows.begin; i < rows.end; i += kRows, a += depths.size() * kRows) packer.pack(a, i);
  }
  void multiply(Range columns, Range depths) const {
    parallel_team(cut_.team, [&](int t, int team) {
      float* a = a_ + t * cut_.floats_of_a();
      const Range tasks = piece(cut_.row_tasks * cut_.column_tasks, t, team);
      for (int64_t task = tasks.begin; task < tasks.end; ++task) {
        const int64_t block = task / cut_.column_tasks, column_task = task % cut_.column_tasks;
        Range rows = piece(cut_.panels(), block, cut_.row_tasks);
        rows = {rows.begin * kRows, std::min(cut_.m, rows.end * kRows)};
        if (task == tasks.begin || column_task == 0) pack_a(a, rows, depths);
        const Range panels = piece(ceil_div(columns.size(), kColumns), column_task, cut_.column_tasks);
        for (int64_t p = panels.begin; p < panels.end; ++p) {
          const int64_t j = columns.begin + p * kColumns;
          multiply_panel(a, b_ + p * depths.size() * kColumns, rows, {j, std::min(columns.end, j + kColumns)}, depths);
        }
      }
    });
  }
  void multiply_panel(const float* a, const float* b, Range rows, Range columns, Range depths) const {
    const int64_t n = columns.size();
    const auto& blocks = n <= kLanes ? kBlocks<1> : kBlocks<kVectors>;
    Target to{nullptr, cut_.n, x_.bias ? x_.bias + columns.begin : nullptr, depths.begin == 0, depths.end == cut_.k,
              relu_};
    // A block that reaches past the last column is a copy.
    const bool copied = n % kLanes != 0;
    float copy[kRows * kColumns], bias[kColumns];
    if (copied) {
      std::fill_n(copy, kRows * kColumns, 0.0f);
      std::fill_n(bias, kColumns, 0.0f);
      if (to.bias) std::copy_n(to.bias, n, bias), to.bias = bias;
      to.step = kColumns;
    }
    for (int64_t i = rows.begin; i < rows.end; i += kRows, a += depths.size() * kRows) {
      const int64_t height = std::min<int64_t>(kRows, rows.end - i);
      float* c = x_.c + i * cut_.n + columns.begin;
      to.c = copied ? copy : c;
      for (int64_t r = 0; copied && !to.first && r < height; ++r) std::copy_n(c + r * cut_.n, n, copy + r * kColumns);
      blocks[static_cast<size_t>(height - 1)](depths.size(), a, b, to);
      for (int64_t r = 0; copied && r < height; ++r) std::copy_n(copy + r * kColumns, n, c + r * cut_.n);
    }
  }

  const Cut& cut_;
  const Operands& x_;
  bool relu_;
  float *a_, *b_;
};

// The offset of the i-th matrix of an operand whose batch may be broadcast to that of c.
int64_t offset_of(int64_t i, const Shape& c, const Shape& batch, int64_t numel) {
  int64_t at = 0, step = numel;
  for (int d = c.rank() - 1; d >= 0; --d) {
    if (batch[d] != 1) at += i % c[d] * step;
    step *= batch[d];
    i /= c[d];
  }
  return at;
}

}  // namespace

std::unique_ptr<Kernel> packed_gemm_kernel(const Product& product, bool relu) {
  if (product.dtype != DType::kF32) return nullptr;
  Product p = product;
  if (!p.transpose_a && p.batch_b.numel() == 1) {  // one product of all rows
    p.m *= p.batch_a.numel();
    p.batch_a = p.batch_b = p.batch_c = {};
  }
  // Threads share the products if there are enough of them, else each product.
  const int64_t batch = p.batch_c.numel();
  const int team = batch >= p.threads ? p.threads : 1;
  const Cut cut(p.m, p.n, p.k, team > 1 ? 1 : p.threads);
  const int64_t floats = cut.floats_of_b() + cut.team * cut.floats_of_a();
  auto kernel = make_kernel("plumb:packed_gemm", [=](const Launch& l) {
    const auto in = [&](size_t i) { return static_cast<const float*>(l.in[i]); };
    parallel_team(team, [&](int t, int count) {
      float* packed = static_cast<float*>(l.workspace) + t * floats;
      const Range mine = piece(batch, t, count);
      for (int64_t i = mine.begin; i < mine.end; ++i) {
        const float *a = in(0) + offset_of(i, p.batch_c, p.batch_a, p.m * p.k),
                    *b = in(1) + offset_of(i, p.batch_c, p.batch_b, p.k * p.n);
        const Operands x{{a, p.transpose_a ? p.m : 1, p.transpose_a ? 1 : p.k},
                         {b, p.transpose_b ? 1 : p.n, p.transpose_b ? p.k : 1},
                         p.bias ? in(2) : nullptr,
                         static_cast<float*>(l.out[0]) + i * p.m * p.n};
        Multiplication(cut, x, relu, packed + cut.floats_of_b(), packed).run();
      }
    });
  });
  kernel->info().workspace_bytes = static_cast<size_t>(team * floats) * sizeof(float);
  return kernel;
}

}  // namespace plumb::cpu
