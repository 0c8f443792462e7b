#include "kernels/cpu/gemm/packed_product.h"

#include <algorithm>
#include <bit>

#include "kernels/cpu/cache.h"
#include "kernels/cpu/nontemporal.h"

namespace plumb::cpu {
namespace {

// How much of a matrix is packed at once, beside what packed_product.h says: a block of a (kHeight high) takes 192 KB
// of a second-level cache; the panels of b share the last level.
constexpr int64_t kDepth = kMostPackedDepth;
constexpr int64_t kHeight = (int64_t{192} << 10) / (4 * kDepth);
constexpr int64_t kMostColumns = (int64_t{4} << 20) / (4 * kDepth) / kBlockColumns * kBlockColumns;

// Not more rows than this are packed whole, into 320 KB of a second-level cache.
constexpr int64_t kFewRows = (int64_t{320} << 10) / (4 * kDepth);
// How many columns such rows are multiplied by at once. Where the sums of these are kept, they take half of a
// second-level cache, and b a quarter: a is packed again for each such group.
int64_t most_columns_of_group(int64_t m, const ProductForm& form) {
  if (form.c_has_sums) return kMostPackedColumns;
  const int64_t floats = l2_bytes() / 4, columns = std::min(floats / 2 / m, floats / 4 / kDepth);
  return std::max(columns / kBlockColumns * kBlockColumns, kMostPackedColumns);
}
// How many columns of b, at so many depths, are multiplied at once where blocks of c have sums of their own: these take
// half of a second-level cache.
int64_t most_columns_of_block(int64_t k) {
  const int64_t columns = std::min(l2_bytes() / 8 / kHeight, kMostColumns * kDepth / k);
  return std::max(columns / kBlockColumns, int64_t{1}) * kBlockColumns;
}
// With fewer rows of a than this, threads rather share the columns.
constexpr int64_t kLeastRows = 4 * kBlockRows;

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

PackedProduct::PackedProduct(int64_t m, int64_t n, int64_t k, int threads, const ProductForm& form)
    : m_(m),
      n_(n),
      k_(k),
      form_(form),
      team_(threads_for(m * n * k, threads)),
      parts_(ceil_div(ceil_div(k, form.depths), kDepth / form.depths)),
      spans_(spans_of(m, n, parts_)),
      has_few_rows_(spans_ == 1 && m <= kFewRows && n / team_ >= m / 2) {
  const int64_t panels = ceil_div(n, kBlockColumns);
  if (spans_ > 1) {
    wide_ = panels * kBlockColumns;
    team_ = static_cast<int>(std::min<int64_t>(team_, spans_));
    return;
  }
  if (has_few_rows_) {
    wide_ = std::clamp<int64_t>(panels / team_ * kBlockColumns, kBlockColumns, most_columns_of_group(m, form));
    team_ = static_cast<int>(std::min<int64_t>(team_, panels));
    return;
  }
  wide_ = std::min(panels * kBlockColumns, form.c_has_sums ? kMostColumns : most_columns_of_block(k));
  // Where all parts of b fit, a block of c passes through the caches once, not once for each part. Groups of columns
  // that c cannot keep sums of are made to.
  const int64_t groups = ceil_div(panels * kBlockColumns, wide_);
  if (!form.c_has_sums) wide_ = ceil_div(panels, groups) * kBlockColumns;
  if ((groups == 1 || !form.c_has_sums) && wide_ * k <= kMostColumns * kDepth) together_ = parts_;
  int64_t split = std::min<int64_t>(team_, ceil_div(m, kLeastRows));
  while (team_ % split != 0) --split;  // else some threads have no task
  const int64_t height = kHeight / form_.rows * form_.rows;
  row_tasks_ = ceil_div(ceil_div(m, height), split) * split;
  column_tasks_ = std::clamp<int64_t>(team_ / row_tasks_, 1, wide_ / kBlockColumns);
}

int64_t PackedProduct::floats_of_a() const {
  const int64_t floats = rows_of_block() * most_depths();
  return ceil_div(floats, kBlockColumns) * kBlockColumns;  // rows of b's panels stay aligned behind them
}
int64_t PackedProduct::floats_of_b() const {
  return (has_few_rows_ ? std::min(wide_, kMostPackedColumns) : wide_) * (together_ > 1 ? k_ : most_depths());
}
int64_t PackedProduct::floats() const { return floats_of_all_b() + team_ * floats_of_a() + floats_of_sums(); }

// One run, with the memory of its panels: first b's, whose rows are whole vectors.
class PackedProduct::Run {
  // A block's rows: all of few, or a piece of kHeight and what rounding to panels adds.
  static constexpr int64_t kMostRows = std::max(kFewRows, 2 * kHeight);

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
      Block block;
      for (int64_t i = mine.begin; i < mine.end; ++i) {
        const Range parts = piece(cut_.parts_, i, cut_.spans_);
        for (int64_t part = parts.begin; part < parts.end; ++part) {
          const Range depths = cut_.depths(part);
          a_.pack(a, rows, depths);
          pack_b(b, columns, columns, depths);
          Ahead ahead;
          if (part + 1 < parts.end) ahead = next(rows, columns, part + 1);
          set(block, rows, columns, {part == parts.begin, false, sums_of(i)});
          multiply_panels(a, b, columns, depths.size(), block, ahead);
        }
      }
    });
    result_.is_f32() ? add_spans<float>() : add_spans<Bfloat16>();
  }

  void multiply_few_rows() const {
    parallel_team(cut_.team_, [&](int t, int team) {
      float *a = a_of(t), *b = panels_of_b_ + t * cut_.floats_of_b();
      const Range rows{0, cut_.m_}, mine = piece_of({0, cut_.n_}, t, team);
      const int64_t groups = ceil_div(mine.size(), cut_.wide_), steps = groups * cut_.parts_;
      Block block;
      // All groups of columns at a part of the depth, or all parts for a group, which keeps its sums.
      const auto part_of = [&](int64_t i) { return cut_.has_block_sums() ? i % cut_.parts_ : i / groups; };
      const auto columns_of = [&](int64_t i) {
        const int64_t begin = mine.begin + (cut_.has_block_sums() ? i / cut_.parts_ : i % groups) * cut_.wide_;
        return Range{begin, std::min(mine.end, begin + cut_.wide_)};
      };
      for (int64_t i = 0; i < steps; ++i) {
        const Range columns = columns_of(i), depths = cut_.depths(part_of(i));
        if (i == 0 || part_of(i) != part_of(i - 1)) a_.pack(a, rows, depths);
        set(block, rows, columns, part_of_c(depths, own_sums(t)));
        for (Range some = next_of(columns, columns.begin); some.size() > 0;) {
          b_.pack(b, some, depths);
          const Range more = next_of(columns, some.end);
          Ahead ahead;
          if (more.size() > 0) {
            ahead.b = b_.ahead(more, depths);
          } else if (i + 1 < steps) {
            ahead = next(rows, next_of(columns_of(i + 1), columns_of(i + 1).begin), part_of(i + 1));
            if (part_of(i) == part_of(i + 1)) ahead.a = {};
          }
          multiply_panels(a, b, some, depths.size(), block, ahead);
          some = more;
        }
      }
      if (result_.stream) nontemporal_fence();
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
            run_task(t, task, columns, parts, then);
          }
          if (result_.stream) nontemporal_fence();
        });
      }
    }
  }

 private:
  // Sums of a block, of a span, of a thread if it keeps some.
  float* sums_of(int64_t i) const { return sums_ + i * cut_.floats_of_block(); }
  float* own_sums(int thread) const { return cut_.has_block_sums() ? sums_of(thread) : nullptr; }
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
    const int64_t rows = cut_.form_.rows;
    return {panels.begin * rows, std::min(cut_.m_, panels.end * rows)};
  }
  void run_task(int thread, int64_t task, Range columns, Range parts, Ahead then) const {
    float* const a = a_of(thread);
    Block block;
    const Range rows = rows_of(task);
    const Range mine = piece_of(columns, task % cut_.column_tasks_, cut_.column_tasks_);
    for (int64_t part = parts.begin; part < parts.end; ++part) {
      const Range depths = cut_.depths(part);
      a_.pack(a, rows, depths);
      Ahead ahead = then;
      if (part + 1 < parts.end) ahead = {a_.ahead(rows, cut_.depths(part + 1)), {}};
      const float* b = b_of(columns, part, parts) + (mine.begin - columns.begin) * depths.size();
      set(block, rows, mine, part_of_c(depths, own_sums(thread)));
      multiply_panels(a, b, mine, depths.size(), block, ahead);
    }
  }
  // Whole panels of a range of columns, which begins with one.
  static Range piece_of(Range columns, int64_t i, int64_t pieces) {
    const Range panels = piece(ceil_div(columns.size(), kBlockColumns), i, pieces);
    return {columns.begin + panels.begin * kBlockColumns,
            std::min(columns.end, columns.begin + panels.end * kBlockColumns)};
  }

  // Those of some columns that few rows are multiplied by at once, from one on.
  Range next_of(Range columns, int64_t begin) const {
    return {begin, std::min(columns.end, begin + kMostPackedColumns)};
  }
  // What a part packs.
  Ahead next(Range rows, Range columns, int64_t part) const {
    const Range depths = cut_.depths(part);
    return {a_.ahead(rows, depths), b_.ahead(columns, depths)};
  }

  // Which part of the sums products are, and the sums of the block alone, if it has some.
  struct Sum {
    bool first, last;
    float* of_block;
  };
  Sum part_of_c(Range depths, float* of_block) const { return {depths.begin == 0, depths.end == cut_.k_, of_block}; }

  // Some rows and columns of c, whose offsets are kept here.
  struct Block {
    Range columns;
    float* sums;  // of the block alone, panel by panel, or null
    int64_t at[kMostRows], in_sums[kMostRows];
    BlocksOfC to;
  };
  void set(Block& block, Range rows, Range columns, const Sum& sum) const {
    block.columns = columns, block.sums = sum.of_block;
    result_.rows.fill(block.at, rows);
    for (int64_t i = 0; i < rows.size(); ++i) block.in_sums[i] = i * kBlockColumns;
    block.to = {.sums = nullptr,
                .c = result_.c,
                .sums_at = block.sums ? block.in_sums : block.at,
                .at = block.at,
                .rows = rows.size(),
                .columns = columns,
                .bias = cut_.spans_ > 1 ? nullptr : result_.bias,  // which their sum has
                .first = sum.first,
                .last = sum.last,
                .relu = result_.relu,
                .whole_sums = block.sums != nullptr,
                .stream = result_.stream};
  }
  // Multiplies some columns of a block.
  void multiply_panels(const float* a, const float* b, Range columns, int64_t depth, Block& block, Ahead& ahead) const {
    BlocksOfC& to = block.to;
    to.ahead = &ahead;
    for (int64_t j = columns.begin; j < columns.end; j += kBlockColumns, b += kBlockColumns * depth) {
      to.columns = {j, std::min(columns.end, j + kBlockColumns)};
      if (block.sums) to.sums = block.sums + (j - block.columns.begin) * cut_.rows_of_block();
      if (!block.sums && result_.sums) to.sums = result_.sums + j;
      a_.multiply(depth, a, b, to);
    }
  }

  template <class T>
  void add_spans() const {
    parallel_for(cut_.m_, kGrainBytes / (4 * cut_.n_ * cut_.spans_), [&](int64_t begin, int64_t end) {
      int64_t at[kMostRows];
      result_.rows.fill(at, {begin, end});
      for (int64_t r = begin; r < end; ++r) {
        add_row(static_cast<T*>(result_.c) + at[r - begin], sums_ + r * kBlockColumns);
      }
    });
  }
  // A row of c: the sum of those of the spans.
  template <class T>
  void add_row(T* c, const float* sums) const {
    for (int64_t j = 0; j < cut_.n_; j += simd::kLanes) {
      const int64_t n = std::min(simd::kLanes, cut_.n_ - j);
      simd::Vec sum = result_.bias ? simd::load(result_.bias + j, n) : simd::Vec{};
      const float* of_row = sums + j / kBlockColumns * kBlockColumns * cut_.rows_of_block() + j % kBlockColumns;
      for (int64_t i = 0; i < cut_.spans_; ++i) sum += simd::load(of_row + i * cut_.floats_of_block(), n);
      simd::store(c + j, result_.relu ? simd::relu(sum) : sum, n);
    }
  }

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

PackedProducts::PackedProducts(int64_t count, int64_t m, int64_t n, int64_t k, int threads, const ProductForm& form)
    : count_(count),
      team_(count < threads ? 1 : threads_for(count * m * n * k, threads)),
      product_(m, n, k, team_ > 1 ? 1 : threads, form) {}

}  // namespace plumb::cpu
