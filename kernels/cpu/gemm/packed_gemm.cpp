#include "kernels/cpu/gemm/packed_gemm.h"

#include <array>
#include <utility>
#include <vector>

#include "kernels/cpu/gemm/panels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd.h"

namespace plumb::cpu {
namespace {

using simd::kLanes;
using simd::Vec;

// A block of c in registers, beside a row of b and an element of a: kRows x kColumns.
constexpr int kVectors = 2, kRows = (simd::kRegisters - kVectors - 1) / kVectors;
constexpr int64_t kColumns = kVectors * kLanes;

// How much of a matrix is packed at once. A panel of b (kColumns wide) takes half of a first-level cache of 32 KB, a
// block of a (kBlock high) 192 KB of a second-level one; the panels of b share the last level.
constexpr int64_t kDepth = (int64_t{16} << 10) / (4 * kColumns);
constexpr int64_t kBlock = (int64_t{192} << 10) / (4 * kDepth) / kRows * kRows;
constexpr int64_t kMostColumns = (int64_t{4} << 20) / (4 * kDepth) / kColumns * kColumns;

// So many panels of b are packed together.
constexpr int64_t kGroup = 8;
// Not more rows than this are packed whole, into 320 KB of a second-level cache.
constexpr int64_t kFewRows = (int64_t{320} << 10) / (4 * kDepth);
// With fewer panels of a than this, threads rather share the columns.
constexpr int64_t kLeastPanels = 4;

// With fewer multiplications than this, a thread has less work than it costs to wake it.
constexpr int64_t kGrain = 1 << 18;
int threads_for(int64_t multiplications, int threads) {
  return static_cast<int>(std::clamp<int64_t>(multiplications / kGrain, 1, threads));
}

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
      const Vec element = simd::broadcast(a + r);
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
  if (to.relu && to.last) {
    put([](Vec y) { return simd::relu(y); });
  } else {
    put([](Vec y) { return y; });
  }
}

using MultiplyBlock = void (*)(int64_t depth, const float* a, const float* b, const Target& to);
template <int V, int... rows>
constexpr std::array<MultiplyBlock, sizeof...(rows)> blocks_of(std::integer_sequence<int, rows...>) {
  return {&multiply_block<rows + 1, V>...};
}
// Indexed by the number of rows - 1.
template <int V>
constexpr auto kBlocks = blocks_of<V>(std::make_integer_sequence<int, kRows>());

// How a product is cut. Its depth is cut into parts that are added one after the other. With few rows, each thread
// packs all of them and a group of b's panels at a time, for columns of its own: then b passes through a core's own
// caches once. Else threads pack b together, and share out blocks of a by ranges of b's panels.
struct Cut {
  int64_t m, n, k;
  int team;       // threads
  int64_t parts;  // of the depth
  bool has_few_rows;
  int64_t wide;  // columns that are packed at once, by one thread or by all of them; whole panels
  int64_t row_tasks = 1, column_tasks = 1;

  Cut(int64_t rows, int64_t columns, int64_t depth, int threads)
      : m(rows),
        n(columns),
        k(depth),
        team(threads_for(m * n * k, threads)),
        parts(ceil_div(k, kDepth)),
        has_few_rows(m <= kFewRows && n / team >= m / 2) {
    const int64_t panels = ceil_div(n, kColumns);
    if (has_few_rows) {
      wide = std::clamp<int64_t>(panels / team, 1, kGroup) * kColumns;
      team = static_cast<int>(std::min<int64_t>(team, panels));
      return;
    }
    wide = std::min(panels * kColumns, kMostColumns);
    int64_t split = std::min<int64_t>(team, ceil_div(row_panels(), kLeastPanels));
    while (team % split != 0) --split;  // else some threads have no task
    row_tasks = ceil_div(ceil_div(m, kBlock), split) * split;
    column_tasks = std::clamp<int64_t>(team / row_tasks, 1, wide / kColumns);
  }
  int64_t row_panels() const { return ceil_div(m, kRows); }
  int64_t floats_of_a() const { return ceil_div(row_panels(), row_tasks) * kRows * ceil_div(k, parts); }
  int64_t floats_of_b() const { return wide * ceil_div(k, parts); }
  int64_t floats_of_all_b() const { return (has_few_rows ? team : 1) * floats_of_b(); }
  int64_t floats() const { return floats_of_all_b() + ceil_div(team * floats_of_a(), kColumns) * kColumns; }
};

struct Operands {
  Operand a, b;
  const float* bias;
  float* c;
};

class Multiplication {
 public:
  // `packed` is memory for cut.floats() numbers.
  Multiplication(const Cut& cut, const Operands& x, bool relu, float* packed)
      : cut_(cut), x_(x), relu_(relu), b_(packed), a_(packed + cut.floats_of_all_b()) {}

  void run() const { cut_.has_few_rows ? multiply_few_rows() : multiply_blocks(); }

 private:
  void multiply_few_rows() const {
    parallel_team(cut_.team, [&](int t, int team) {
      float *a = a_ + t * cut_.floats_of_a(), *b = b_ + t * cut_.floats_of_b();
      const Range mine = piece(ceil_div(cut_.n, kColumns), t, team);
      for (int64_t part = 0; part < cut_.parts; ++part) {
        const Range depths = piece(cut_.k, part, cut_.parts), rows{0, cut_.m};
        pack_a(a, rows, depths);
        for (int64_t p = mine.begin; p < mine.end; p += cut_.wide / kColumns) {
          const Range columns{p * kColumns, std::min({cut_.n, mine.end * kColumns, p * kColumns + cut_.wide})};
          pack_b(b, columns, depths);
          multiply_panels(a, b, rows, columns, depths);
        }
      }
    });
  }

  void multiply_blocks() const {
    for (int64_t first = 0; first < cut_.n; first += cut_.wide) {
      const Range columns{first, std::min(cut_.n, first + cut_.wide)};
      for (int64_t part = 0; part < cut_.parts; ++part) {
        const Range depths = piece(cut_.k, part, cut_.parts);
        parallel_team(cut_.team, [&](int t, int team) {
          const Range mine = piece_of(columns, t, team);
          for (int64_t j = mine.begin; j < mine.end; j += kGroup * kColumns) {
            pack_b(b_ + (j - first) * depths.size(), {j, std::min(mine.end, j + kGroup * kColumns)}, depths);
          }
        });
        parallel_team(cut_.team, [&](int t, int team) {
          const Range tasks = piece(cut_.row_tasks * cut_.column_tasks, t, team);
          for (int64_t task = tasks.begin; task < tasks.end; ++task) {
            run_task(a_ + t * cut_.floats_of_a(), task, task == tasks.begin, columns, depths);
          }
        });
      }
    }
  }
  // Each block of rows is first packed, unless the task before was of the same.
  void run_task(float* a, int64_t task, bool is_first, Range columns, Range depths) const {
    const int64_t column_task = task % cut_.column_tasks;
    const Range rows = rows_of(piece(cut_.row_panels(), task / cut_.column_tasks, cut_.row_tasks));
    if (is_first || column_task == 0) pack_a(a, rows, depths);
    const Range mine = piece_of(columns, column_task, cut_.column_tasks);
    multiply_panels(a, b_ + (mine.begin - columns.begin) * depths.size(), rows, mine, depths);
  }
  Range rows_of(Range panels) const { return {panels.begin * kRows, std::min(cut_.m, panels.end * kRows)}; }
  // Whole panels of a range of columns, which begins with one.
  static Range piece_of(Range columns, int64_t i, int64_t pieces) {
    const Range panels = piece(ceil_div(columns.size(), kColumns), i, pieces);
    return {columns.begin + panels.begin * kColumns, std::min(columns.end, columns.begin + panels.end * kColumns)};
  }

  void pack_a(float* to, Range rows, Range depths) const { PanelPacker<kRows>(x_.a, depths, cut_.m).pack(to, rows); }
  void pack_b(float* to, Range columns, Range depths) const {
    PanelPacker<kColumns>(x_.b, depths, cut_.n).pack(to, columns);
  }

  void multiply_panels(const float* a, const float* b, Range rows, Range columns, Range depths) const {
    for (int64_t j = columns.begin; j < columns.end; j += kColumns, b += kColumns * depths.size()) {
      multiply_panel(a, b, rows, {j, std::min(columns.end, j + kColumns)}, depths);
    }
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
  float *b_, *a_;  // b first, whose rows are whole cache lines
};

// The offset of the i-th matrix of an operand whose batch may be broadcast to that of c.
int64_t offset_of(int64_t i, const Shape& c, const Shape& batch, int64_t matrix) {
  int64_t at = 0, step = matrix;
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
  const int team = batch < p.threads ? 1 : threads_for(batch * p.m * p.n * p.k, p.threads);
  const Cut cut(p.m, p.n, p.k, team > 1 ? 1 : p.threads);
  std::vector<int64_t> at_a, at_b;
  for (int64_t i = 0; i < batch; ++i) {
    at_a.push_back(offset_of(i, p.batch_c, p.batch_a, p.m * p.k));
    at_b.push_back(offset_of(i, p.batch_c, p.batch_b, p.k * p.n));
  }
  auto kernel = make_kernel("plumb:packed_gemm", [=](const Launch& l) {
    const auto in = [&](size_t i) { return static_cast<const float*>(l.in[i]); };
    parallel_team(team, [&](int t, int count) {
      float* packed = static_cast<float*>(l.workspace) + t * cut.floats();
      const Range mine = piece(batch, t, count);
      for (int64_t i = mine.begin; i < mine.end; ++i) {
        const auto number = static_cast<size_t>(i);
        const float *a = in(0) + at_a[number], *b = in(1) + at_b[number];
        const Operands x{{a, p.transpose_a ? p.m : 1, p.transpose_a ? 1 : p.k},
                         {b, p.transpose_b ? 1 : p.n, p.transpose_b ? p.k : 1},
                         p.bias ? in(2) : nullptr,
                         static_cast<float*>(l.out[0]) + i * p.m * p.n};
        Multiplication(cut, x, relu, packed).run();
      }
    });
  });
  kernel->info().workspace_bytes = static_cast<size_t>(team * cut.floats()) * sizeof(float);
  return kernel;
}

}  // namespace plumb::cpu
