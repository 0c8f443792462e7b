#include "kernels/cpu/gemm/packed_product.h"

#include <algorithm>
#include <bit>

#include "kernels/cpu/cache.h"

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
// half of a second-level cache, and all parts of b fit. With fewer than these, a would be packed too often.
constexpr int64_t kLeastOfBlock = 4 * kBlockColumns;
int64_t most_columns_of_block(int64_t k) {
  return std::min(l2_bytes() / 8 / kHeight, kMostColumns * kDepth / k) / kBlockColumns * kBlockColumns;
}
// With fewer rows of a than this, threads rather share the columns.
constexpr int64_t kLeastRows = 4 * kBlockRows;

// Where c has at most so many rows and columns, the depth is cut into spans: of so many parts or more, into so many
// or more, whose sums take 2 MB at most, without what blocks of them are larger than c.
constexpr int64_t kMostColumnsOfSpans = 1024, kLeastParts = 4, kMostSums = int64_t{512} << 10;
constexpr uint64_t kLeastSpans = 8, kMostSpans = 64;
int64_t spans_of(int64_t m, int64_t n, int64_t parts) {
  if (m > kFewRows || n > kMostColumnsOfSpans) return 1;
  const auto spans = std::bit_floor(static_cast<uint64_t>(std::min(parts / kLeastParts, kMostSums / (m * n))));
  return spans < kLeastSpans ? 1 : static_cast<int64_t>(std::min(spans, kMostSpans));
}

}  // namespace

int threads_for(int64_t multiplications, int threads) {
  constexpr int64_t kGrain = 1 << 18;
  return static_cast<int>(std::clamp<int64_t>(multiplications / kGrain, 1, threads));
}

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
  static_assert(kFewRows <= kMostRows && 2 * kHeight <= kMostRows);
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
  wide_ = std::min(panels * kBlockColumns, kMostColumns);
  // Where all parts of b fit, a block of c passes through the caches once, not once for each part. Groups of columns
  // that c cannot keep sums of are made to.
  if (const int64_t most = most_columns_of_block(k); !form.c_has_sums && most >= kLeastOfBlock) {
    wide_ = ceil_div(panels, ceil_div(panels * kBlockColumns, most)) * kBlockColumns;
    together_ = parts_;
  } else if (wide_ == panels * kBlockColumns && wide_ * k <= kMostColumns * kDepth) {
    together_ = parts_;
  }
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

PackedProducts::PackedProducts(int64_t count, int64_t m, int64_t n, int64_t k, int threads, const ProductForm& form)
    : count_(count),
      team_(count < threads ? 1 : threads_for(count * m * n * k, threads)),
      product_(m, n, k, team_ > 1 ? 1 : threads, form) {}

}  // namespace plumb::cpu
