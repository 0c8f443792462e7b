// Products of large matrices: both operands are packed into panels that fit in the caches, and blocks of c are kept in
// registers (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008).
#pragma once

#include <algorithm>
#include <limits>

#include "kernels/cpu/gemm/packed_block.h"
#include "kernels/cpu/parallel.h"

namespace plumb::cpu {

/// Operands are not asked for more depths than this at once: a panel of b takes half of a first-level cache of 32 KB.
inline constexpr int64_t kMostPackedDepth = (int64_t{16} << 10) / (4 * kBlockColumns);
/// Nor b for more columns than this.
inline constexpr int64_t kMostPackedColumns = 8 * kBlockColumns;

/// How many of these threads so many multiplications are worth: with fewer, one has less work than it costs to wake it.
int threads_for(int64_t multiplications, int threads);

/// How a and c are formed.
struct ProductForm {
  int64_t rows = kBlockRows;  ///< lines of a's panels
  int64_t depths = 1;         ///< what these have a multiple of, in memory; all parts of the depth begin with one
  bool c_has_sums = true;     ///< whether c, between parts of the depth, holds sums: it is in f32
};

/// An operand, which packs some of its lines (rows of a, columns of b) at some depths. A panel has kBlockRows lines of
/// a or kBlockColumns of b, those of one depth side by side, with numbers in the place of lines that do not exist, if a
/// has no format of its own; one panel lies behind the other. Lines begin with a panel. Depths are counted in words
/// (packed_block.h), here and below.
class PanelSource {
 public:
  virtual ~PanelSource() = default;
  virtual void pack(float* to, Range lines, Range depths) const = 0;
  /// The memory that this reads, if it is worth fetching before.
  virtual RowsAhead ahead([[maybe_unused]] Range lines, [[maybe_unused]] Range depths) const { return {}; }
  /// Of a: multiplies lines that it has packed, `depth` of their depths, by a panel of b. An operand may have a way of
  /// its own, and then a format, of which the product knows the ProductForm. Words are floats if nothing else is said.
  virtual void multiply(int64_t depth, const float* lines, const float* b, const BlocksOfC& to) const {
    multiply_panel<float>(depth, lines, b, to);
  }
};

/// Where rows of c lie: they may be cut into runs, and these into groups of runs, with steps of their own.
struct RowPlaces {
  int64_t step;
  int64_t in_run = std::numeric_limits<int64_t>::max(), run_step = 0;
  int64_t runs = std::numeric_limits<int64_t>::max(), group_step = 0;
  /// Writes the offset of each of these rows.
  void fill(int64_t* at, Range rows) const;
};

/// The result: c, of which columns are neighbours, with a bias of each column (or null) and a ReLU if wanted. Where
/// words are of bf16, so is c, and its sums are kept elsewhere in f32, at the same offsets, if the product keeps some.
struct PackedResult {
  void* c;
  RowPlaces rows;
  const float* bias = nullptr;
  bool relu = false;
  float* sums = static_cast<float*>(c);  // null if there is nowhere else to keep some
  bool stream = false;                   // written past the caches, where the product can
  bool is_f32() const { return sums == c; }
};

/// c = a b for a of m rows and b of n columns at depth k > 0; sums are in f32. How it is cut is decided beforehand, for
/// so many threads; sums of finite numbers do not depend on how many. With few rows, each thread packs all of them and
/// a group of b's panels at a time, for columns of its own: then b passes through a core's own caches once. Where c is
/// small and the depth long, as in a gradient of weights, each thread adds up spans of the depth of its own, and
/// these sums are added at the end. Else threads pack b together, and share out blocks of a by ranges of b's panels.
/// Where c cannot hold sums, a thread keeps those of its block, and adds up all parts of the depth before the next one:
/// so many columns at a time that they stay in a core's own cache, for each of which a is packed again.
class PackedProduct {
 public:
  PackedProduct(int64_t m, int64_t n, int64_t k, int threads, const ProductForm& form = {});
  /// The memory that a run needs.
  int64_t floats() const;
  /// Whether the result needs memory for sums that are not complete, between parts of the depth.
  bool keeps_sums() const { return parts_ > 1 && spans_ == 1 && !has_block_sums(); }
  void run(const PanelSource& a, const PanelSource& b, const PackedResult& result, float* memory) const;

 private:
  class Run;
  static constexpr int64_t kMostRows = 768;  // of a block

  int64_t row_panels() const { return ceil_div(m_, form_.rows); }
  int64_t floats_of_a() const;
  int64_t floats_of_b() const;
  int64_t copies_of_b() const { return has_few_rows_ || spans_ > 1 ? team_ : 1; }
  int64_t floats_of_all_b() const { return copies_of_b() * floats_of_b(); }
  // Whether a thread keeps the sums of its block of c itself: it adds up all parts of one before the next.
  bool has_block_sums() const { return !form_.c_has_sums && parts_ > 1 && (has_few_rows_ || together_ > 1); }
  int64_t rows_of_block() const { return ceil_div(row_panels(), row_tasks_) * form_.rows; }
  int64_t columns_of_block() const { return ceil_div(wide_ / kBlockColumns, column_tasks_) * kBlockColumns; }
  int64_t floats_of_block() const { return rows_of_block() * columns_of_block(); }
  int64_t floats_of_sums() const { return (spans_ > 1 ? spans_ : has_block_sums() ? team_ : 0) * floats_of_block(); }
  Range depths(int64_t part) const {
    const Range units = piece(ceil_div(k_, form_.depths), part, parts_);
    return {units.begin * form_.depths, std::min(k_, units.end * form_.depths)};
  }
  int64_t most_depths() const { return ceil_div(ceil_div(k_, form_.depths), parts_) * form_.depths; }  // of a part

  int64_t m_, n_, k_;
  ProductForm form_;
  int team_;              // threads
  int64_t parts_;         // of the depth
  int64_t spans_;         // of parts, each of which has a sum of its own
  int64_t together_ = 1;  // so many parts of b are packed at once
  bool has_few_rows_;
  int64_t wide_;  // columns that are packed at once, by one thread or by all of them; whole panels
  int64_t row_tasks_ = 1, column_tasks_ = 1;
};

/// Products of one shape. Threads share them out if there are enough, else each product.
class PackedProducts {
 public:
  PackedProducts(int64_t count, int64_t m, int64_t n, int64_t k, int threads, const ProductForm& form = {});
  /// The memory that a run needs.
  int64_t floats() const { return team_ * product_.floats(); }
  bool keeps_sums() const { return product_.keeps_sums(); }
  /// Calls body(i, product, memory) for each of them.
  template <class Body>
  void run(float* memory, const Body& body) const {
    parallel_team(team_, [&](int t, int team) {
      const Range mine = piece(count_, t, team);
      for (int64_t i = mine.begin; i < mine.end; ++i) body(i, product_, memory + t * product_.floats());
    });
  }

 private:
  int64_t count_;
  int team_;
  PackedProduct product_;
};

}  // namespace plumb::cpu
