#include <algorithm>

#include "kernels/cpu/gemm/packed_product.h"
#include "kernels/cpu/nontemporal.h"

namespace plumb::cpu {

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
            ahead.b = next_b(more, depths);
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
  // What a part packs, or of more columns the first.
  RowsAhead next_b(Range columns, Range depths) const {
    if (columns.size() <= 0) return {};
    return b_.ahead({columns.begin, std::min(columns.end, columns.begin + kMostPackedColumns)}, depths);
  }
  Ahead next(Range rows, Range columns, int64_t part) const {
    const Range depths = cut_.depths(part);
    return {a_.ahead(rows, depths), next_b(columns, depths)};
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
    if (block.sums) {
      for (int64_t i = 0; i < rows.size(); ++i) block.in_sums[i] = i * kBlockColumns;
    }
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
      for (int64_t j = 0; j < cut_.n_; j += simd::kLanes) {
        const float* sums = sums_ + j / kBlockColumns * kBlockColumns * cut_.rows_of_block() + j % kBlockColumns;
        for (int64_t r = begin; r < end; ++r) {
          add_vector(static_cast<T*>(result_.c) + at[r - begin] + j, sums + r * kBlockColumns, j);
        }
      }
    });
  }
  // Columns of c from j on, as many as a vector has: the sum of those of the spans.
  template <class T>
  void add_vector(T* c, const float* sums, int64_t j) const {
    const int64_t n = std::min(simd::kLanes, cut_.n_ - j);
    simd::Vec sum = result_.bias ? simd::load(result_.bias + j, n) : simd::Vec{};
    for (int64_t i = 0; i < cut_.spans_; ++i) sum += simd::load(sums + i * cut_.floats_of_block(), n);
    simd::store(c, result_.relu ? simd::relu(sum) : sum, n);
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

}  // namespace plumb::cpu
