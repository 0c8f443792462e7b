#include "kernels/cpu/gemm/packed_product.h"

#include <algorithm>
#include <bit>

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

// Where c has at most so many rows and columns, the depth is cut into spans: of so many parts or more, into so many
// or more, whose sums take 2 MB at most.
constexpr int64_t kMostColumnsOfSpans = 1024, kLeastParts = 4, kMostSums = int64_t{512} << 10;
constexpr uint64_t kLeastSpans = 8, kMostSpans = 64;
int64_t spans_of(int64_t m, int64_t n, int64_t parts) {
  if (m > kFewRows || n > kMostColumnsOfSpans) return 1;
  const auto spans = std::bit_floor(static_cast<uint64_t>(std::min(parts / kLeastParts, kMostSums / (m * n))));
  return spans < kLeastSpans ? 1 : static_cast<int64_t>(std::min(spans, kMostSpans));
}

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
      spans_(spans_of(m, n, parts_)),
      has_few_rows_(spans_ == 1 && m <= kFewRows && n / team_ >= m / 2) {
  const int64_t panels = ceil_div(n, kBlockColumns);
  if (spans_ > 1) {
    wide_ = panels * kBlockColumns;
    team_ = static_cast<int>(std::min<int64_t>(team_, spans_));
    return;
  }
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
int64_t PackedProduct::floats() const { return floats_of_all_b() + team_ * floats_of_a() + floats_of_sums(); }

// One run, with the memory of its panels: first b's, whose rows are whole vectors.
class PackedProduct::Run {
 public:
  Run(const PackedProduct& cut, const PanelSource& a, const PanelSource& b, const PackedResult& result, float* memory)
      : cut_(cut),
        a_(a),
        b_(b),
        result_(result),
        panels_of_b_(memory),
        panels_of_a_(panels_of_b_ + cut.floats_of_all_b()),
        sums_(panels_of_a_ + cut.team_ * cut.floats_of_a()) {}

  void multiply_spans() const {
    const Range rows{0, cut_.m_}, columns{0, cut_.n_};
    parallel_team(cut_.team_, [&](int t, int team) {
      float *a = a_of(t), *b = panels_of_b_ + t * cut_.floats_of_b();
      const Range mine = piece(cut_.spans_, t, team);
      for (int64_t i = mine.begin; i < mine.end; ++i) {
        const Range parts = piece(cut_.parts_, i, cut_.spans_);
        const PackedResult sum{sums_ + i * cut_.m_ * cut_.n_, {cut_.n_}};
        for (int64_t part = parts.begin; part < parts.end; ++part) {
          const Range depths = cut_.depths(part);
          a_.pack(a, rows, depths);
          pack_b(b, columns, columns, depths);
          Ahead ahead;
          if (part + 1 < parts.end) ahead = next(rows, columns, part + 1);
          multiply_panels(a, b, rows, columns, depths.size(), {sum, part == parts.begin, false, &ahead});
        }
      }
    });
    result_.is_f32() ? add_spans<float>() : add_spans<Bfloat16>();
  }

  void multiply_few_rows() const {
    parallel_team(cut_.team_, [&](int t, int team) {
      float *a = a_of(t), *b = panels_of_b_ + t * cut_.floats_of_b();
      const Range rows{0, cut_.m_}, mine = piece_of({0, cut_.n_}, t, team);
      const Range first{mine.begin, std::min(mine.end, mine.begin + cut_.wide_)};
      for (int64_t part = 0; part < cut_.parts_; ++part) {
        const Range depths = cut_.depths(part);
        a_.pack(a, rows, depths);
        for (Range columns = first; columns.size() > 0;) {
          const Range more{columns.end, std::min(mine.end, columns.end + cut_.wide_)};
          b_.pack(b, columns, depths);
          Ahead ahead;
          if (more.size() > 0) ahead = {{}, b_.ahead(more, depths)};
          if (more.size() <= 0 && part + 1 < cut_.parts_) ahead = next(rows, first, part + 1);
          multiply_panels(a, b, rows, columns, depths.size(), part_of_c(depths, &ahead));
          columns = more;
        }
      }
    });
  }

  void multiply_blocks() const {
    for (int64_t first = 0; first < cut_.n_; first += cut_.wide_) {
      const Range columns{first, std::min(cut_.n_, first + cut_.wide_)};
      for (int64_t part = 0; part < cut_.parts_; part += cut_.together_) {
        const Range parts{part, std::min(cut_.parts_, part + cut_.together_)};
        parallel_team(cut_.team_, [&](int t, int team) {
          for (int64_t i = parts.begin; i < parts.end; ++i) {
            pack_b(b_of(columns, i, parts), columns, piece_of(columns, t, team), cut_.depths(i));
          }
        });
        parallel_team(cut_.team_, [&](int t, int team) {
          const Range tasks = piece(cut_.row_tasks_ * cut_.column_tasks_, t, team);
          for (int64_t task = tasks.begin; task < tasks.end; ++task) {
            Ahead then;
            if (task + 1 < tasks.end) {
              then.a = a_.ahead(rows_of(task + 1), cut_.depths(parts.begin));
            } else if (parts.end < cut_.parts_) {
              then = next(rows_of(tasks.begin), piece_of(columns, t, team), parts.end);
            }
            run_task(a_of(t), task, columns, parts, then);
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
  // Some of the columns of a part, whose panels lie at `to`.
  void pack_b(float* to, Range columns, Range mine, Range depths) const {
    for (int64_t j = mine.begin; j < mine.end; j += kMostPackedColumns) {
      b_.pack(to + (j - columns.begin) * depths.size(), {j, std::min(mine.end, j + kMostPackedColumns)}, depths);
    }
  }
  Range rows_of(int64_t task) const {
    const Range panels = piece(cut_.row_panels(), task / cut_.column_tasks_, cut_.row_tasks_);
    return {panels.begin * kBlockRows, std::min(cut_.m_, panels.end * kBlockRows)};
  }
  void run_task(float* a, int64_t task, Range columns, Range parts, Ahead then) const {
    const Range rows = rows_of(task);
    const Range mine = piece_of(columns, task % cut_.column_tasks_, cut_.column_tasks_);
    for (int64_t part = parts.begin; part < parts.end; ++part) {
      const Range depths = cut_.depths(part);
      a_.pack(a, rows, depths);
      Ahead ahead = then;
      if (part + 1 < parts.end) ahead = {a_.ahead(rows, cut_.depths(part + 1)), {}};
      multiply_panels(a, b_of(columns, part, parts) + (mine.begin - columns.begin) * depths.size(), rows, mine,
                      depths.size(), part_of_c(depths, &ahead));
    }
  }
  // Whole panels of a range of columns, which begins with one.
  static Range piece_of(Range columns, int64_t i, int64_t pieces) {
    const Range panels = piece(ceil_div(columns.size(), kBlockColumns), i, pieces);
    return {columns.begin + panels.begin * kBlockColumns,
            std::min(columns.end, columns.begin + panels.end * kBlockColumns)};
  }

  // What a part packs.
  Ahead next(Range rows, Range columns, int64_t part) const {
    const Range depths = cut_.depths(part);
    return {a_.ahead(rows, depths), b_.ahead(columns, depths)};
  }

  // Where products go, whether others were or will be added there, and what is fetched meanwhile.
  struct Sum {
    const PackedResult& to;
    bool first, last;
    Ahead* ahead;
  };
  Sum part_of_c(Range depths, Ahead* ahead) const { return {result_, depths.begin == 0, depths.end == cut_.k_, ahead}; }

  void multiply_panels(const float* a, const float* b, Range rows, Range columns, int64_t depth, const Sum& sum) const {
    int64_t at[kMostRows];
    sum.to.rows.fill(at, rows);
    BlocksOfC to{sum.to.sums, sum.to.c,  at,       rows.size(), columns,
                 sum.to.bias, sum.first, sum.last, sum.to.relu, sum.ahead};
    for (int64_t j = columns.begin; j < columns.end; j += kBlockColumns, b += kBlockColumns * depth) {
      to.columns = {j, std::min(columns.end, j + kBlockColumns)};
      a_.multiply(depth, a, b, to);
    }
  }

  template <class T>
  void add_spans() const {
    parallel_for(cut_.m_, kGrainBytes / (4 * cut_.n_ * cut_.spans_), [&](int64_t begin, int64_t end) {
      int64_t at[kMostRows];
      result_.rows.fill(at, {begin, end});
      for (int64_t r = begin; r < end; ++r) add_row(static_cast<T*>(result_.c) + at[r - begin], sums_ + r * cut_.n_);
    });
  }
  // A row of c: the sum of those of the spans.
  template <class T>
  void add_row(T* c, const float* sums) const {
    for (int64_t j = 0; j < cut_.n_; j += simd::kLanes) {
      const int64_t n = std::min(simd::kLanes, cut_.n_ - j);
      simd::Vec sum = result_.bias ? simd::load(result_.bias + j, n) : simd::Vec{};
      for (int64_t i = 0; i < cut_.spans_; ++i) sum += simd::load(sums + i * cut_.m_ * cut_.n_ + j, n);
      simd::store(c + j, result_.relu ? simd::relu(sum) : sum, n);
    }
  }

  // A block's rows: all of few, or a piece of kHeight and what rounding to panels adds.
  static constexpr int64_t kMostRows = std::max(kFewRows, kHeight + kBlockRows);

  const PackedProduct& cut_;
  const PanelSource &a_, &b_;
  const PackedResult& result_;
  float *panels_of_b_, *panels_of_a_, *sums_;
};

void PackedProduct::run(const PanelSource& a, const PanelSource& b, const PackedResult& result, float* memory) const {
  const Run run(*this, a, b, result, memory);
  if (spans_ > 1) return run.multiply_spans();
  has_few_rows_ ? run.multiply_few_rows() : run.multiply_blocks();
}

PackedProducts::PackedProducts(int64_t count, int64_t m, int64_t n, int64_t k, int threads)
    : count_(count),
      team_(count < threads ? 1 : threads_for(count * m * n * k, threads)),
      product_(m, n, k, team_ > 1 ? 1 : threads) {}

}  // namespace plumb::cpu
