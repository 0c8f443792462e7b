#include "kernels/cpu/gemm/packed_product.h"

#include <algorithm>

namespace plumb::cpu {
namespace {

// How much of a matrix is packed at once, beside what packed_product.h says: a block of a (kHeight high) takes 192 KB
// of a second-level cache; the panels of b share the last level.
constexpr int64_t kDepth = kMostPackedDepth;
constexpr int64_t kHeight = (int64_t{192} << 10) / (4 * kDepth) / kBlockRows * kBlockRows;
constexpr int64_t kMostColumns = (int64_t{4} << 20) / (4 * kDepth) / kBlockColumns * kBlockColumns;

// Not more rows than this are packed whole, into 320 KB of a second-level cache.
constexpr int64_t kFewRows = (int64_t{320} << 10) / (4 * kDepth);
// With fewer panels of a than this, threads rather share the columns.
constexpr int64_t kLeastPanels = 4;

// With fewer multiplications than this, a thread has less work than it costs to wake it.
constexpr int64_t kGrain = 1 << 18;
int threads_for(int64_t multiplications, int threads) {
  return static_cast<int>(std::clamp<int64_t>(multiplications / kGrain, 1, threads));
}

}  // namespace

void RowPlaces::fill(int64_t* at, Range rows) const {
  if (rows.end <= in_run) {  // in one run, as those of a matrix
    for (int64_t i = 0; i < rows.size(); ++i) at[i] = (rows.begin + i) * step;
    return;
  }
  int64_t in = rows.begin % in_run, run = rows.begin / in_run % runs, group = rows.begin / in_run / runs;
  for (int64_t i = 0; i < rows.size(); ++i) {
    at[i] = group * group_step + run * run_step + in * step;
    if (++in < in_run) continue;
    in = 0;
    if (++run < runs) continue;
    run = 0;
    ++group;
  }
}

PackedProduct::PackedProduct(int64_t m, int64_t n, int64_t k, int threads)
    : m_(m),
      n_(n),
      k_(k),
      team_(threads_for(m * n * k, threads)),
      parts_(ceil_div(k, kDepth)),
      has_few_rows_(m <= kFewRows && n / team_ >= m / 2) {
  const int64_t panels = ceil_div(n, kBlockColumns);
  if (has_few_rows_) {
    wide_ = std::clamp<int64_t>(panels / team_ * kBlockColumns, kBlockColumns, kMostPackedColumns);
    team_ = static_cast<int>(std::min<int64_t>(team_, panels));
    return;
  }
  wide_ = std::min(panels * kBlockColumns, kMostColumns);
  // Where all of b fits, a block of c passes through the caches once, not once for each part.
  if (wide_ == panels * kBlockColumns && wide_ * k <= kMostColumns * kDepth) together_ = parts_;
  int64_t split = std::min<int64_t>(team_, ceil_div(row_panels(), kLeastPanels));
  while (team_ % split != 0) --split;  // else some threads have no task
  row_tasks_ = ceil_div(ceil_div(m, kHeight), split) * split;
  column_tasks_ = std::clamp<int64_t>(team_ / row_tasks_, 1, wide_ / kBlockColumns);
}

int64_t PackedProduct::floats_of_a() const {
  const int64_t floats = ceil_div(row_panels(), row_tasks_) * kBlockRows * ceil_div(k_, parts_);
  return ceil_div(floats, kBlockColumns) * kBlockColumns;  // rows of b's panels stay aligned behind them
}
int64_t PackedProduct::floats_of_b() const { return wide_ * (together_ > 1 ? k_ : ceil_div(k_, parts_)); }
int64_t PackedProduct::floats() const { return floats_of_all_b() + team_ * floats_of_a(); }

// One run, with the memory of its panels: first b's, whose rows are whole vectors.
class PackedProduct::Run {
 public:
  Run(const PackedProduct& cut, const PanelSource& a, const PanelSource& b, const PackedResult& result, float* memory)
      : cut_(cut), a_(a), b_(b), result_(result), panels_of_b_(memory), panels_of_a_(memory + cut.floats_of_all_b()) {}

  void multiply_few_rows() const {
    parallel_team(cut_.team_, [&](int t, int team) {
      float *a = a_of(t), *b = panels_of_b_ + t * cut_.floats_of_b();
      const Range mine = piece(ceil_div(cut_.n_, kBlockColumns), t, team), rows{0, cut_.m_};
      for (int64_t part = 0; part < cut_.parts_; ++part) {
        const Range depths = cut_.depths(part);
        a_.pack(a, rows, depths);
        for (int64_t p = mine.begin; p < mine.end; p += cut_.wide_ / kBlockColumns) {
          const Range columns{p * kBlockColumns,
                              std::min({cut_.n_, mine.end * kBlockColumns, p * kBlockColumns + cut_.wide_})};
          b_.pack(b, columns, depths);
          multiply_panels(a, b, rows, columns, depths);
        }
      }
    });
  }

  void multiply_blocks() const {
    for (int64_t first = 0; first < cut_.n_; first += cut_.wide_) {
      const Range columns{first, std::min(cut_.n_, first + cut_.wide_)};
      for (int64_t part = 0; part < cut_.parts_; part += cut_.together_) {
        const Range parts{part, std::min(cut_.parts_, part + cut_.together_)};
        parallel_team(cut_.team_, [&](int t, int team) { pack_b(piece_of(columns, t, team), columns, parts); });
        parallel_team(cut_.team_, [&](int t, int team) {
          const Range tasks = piece(cut_.row_tasks_ * cut_.column_tasks_, t, team);
          for (int64_t task = tasks.begin; task < tasks.end; ++task) {
            run_task(a_of(t), task, columns, parts);
          }
        });
      }
    }
  }

 private:
  float* a_of(int64_t thread) const { return panels_of_a_ + thread * cut_.floats_of_a(); }
  // The panels of a part, of which the first of `parts` lies at the begin.
  float* b_of(Range columns, int64_t part, Range parts) const {
    const int64_t panels = ceil_div(columns.size(), kBlockColumns);
    return panels_of_b_ + panels * kBlockColumns * (cut_.depths(part).begin - cut_.depths(parts.begin).begin);
  }
  void pack_b(Range mine, Range columns, Range parts) const {
    for (int64_t part = parts.begin; part < parts.end; ++part) {
      const Range depths = cut_.depths(part);
      for (int64_t j = mine.begin; j < mine.end; j += kMostPackedColumns) {
        b_.pack(b_of(columns, part, parts) + (j - columns.begin) * depths.size(),
                {j, std::min(mine.end, j + kMostPackedColumns)}, depths);
      }
    }
  }
  void run_task(float* a, int64_t task, Range columns, Range parts) const {
    const Range panels = piece(cut_.row_panels(), task / cut_.column_tasks_, cut_.row_tasks_);
    const Range rows{panels.begin * kBlockRows, std::min(cut_.m_, panels.end * kBlockRows)};
    const Range mine = piece_of(columns, task % cut_.column_tasks_, cut_.column_tasks_);
    for (int64_t part = parts.begin; part < parts.end; ++part) {
      const Range depths = cut_.depths(part);
      a_.pack(a, rows, depths);
      multiply_panels(a, b_of(columns, part, parts) + (mine.begin - columns.begin) * depths.size(), rows, mine, depths);
    }
  }
  // Whole panels of a range of columns, which begins with one.
  static Range piece_of(Range columns, int64_t i, int64_t pieces) {
    const Range panels = piece(ceil_div(columns.size(), kBlockColumns), i, pieces);
    return {columns.begin + panels.begin * kBlockColumns,
            std::min(columns.end, columns.begin + panels.end * kBlockColumns)};
  }

  void multiply_panels(const float* a, const float* b, Range rows, Range columns, Range depths) const {
    int64_t at[kMostRows];
    result_.rows.fill(at, rows);
    BlocksOfC to{result_.c,   at, rows.size(), columns, result_.bias, depths.begin == 0, depths.end == cut_.k_,
                 result_.relu};
    for (int64_t j = columns.begin; j < columns.end; j += kBlockColumns, b += kBlockColumns * depths.size()) {
      to.columns = {j, std::min(columns.end, j + kBlockColumns)};
      a_.multiply(depths.size(), a, b, to);
    }
  }

  // A block's rows: all of few, or a piece of kHeight and what rounding to panels adds.
  static constexpr int64_t kMostRows = std::max(kFewRows, kHeight + kBlockRows);

  const PackedProduct& cut_;
  const PanelSource &a_, &b_;
  const PackedResult& result_;
  float *panels_of_b_, *panels_of_a_;
};

void PackedProduct::run(const PanelSource& a, const PanelSource& b, const PackedResult& result, float* memory) const {
  const Run run(*this, a, b, result, memory);
  has_few_rows_ ? run.multiply_few_rows() : run.multiply_blocks();
}

PackedProducts::PackedProducts(int64_t count, int64_t m, int64_t n, int64_t k, int threads)
    : count_(count),
      team_(count < threads ? 1 : threads_for(count * m * n * k, threads)),
      product_(m, n, k, team_ > 1 ? 1 : threads) {}

}  // namespace plumb::cpu
