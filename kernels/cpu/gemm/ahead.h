// Memory that is fetched while something else is computed: a core that only copies waits for it, and one that only
// computes does not ask for it.
#pragma once

#include <cstdint>

#include "kernels/cpu/range.h"

namespace plumb::cpu {

/// Rows of memory, to be fetched to a second-level cache, one line after another.
class RowsAhead {
 public:
  /// Nothing.
  RowsAhead() = default;
  /// So many rows of so many bytes; from one to the next are `step` bytes. Nothing if they are far apart: lines at such
  /// distances share few sets of a cache, and would drive out what is computed with.
  RowsAhead(const void* first, int64_t rows, int64_t bytes, int64_t step) {
    if (rows <= 0 || bytes <= 0 || rows * step > kFarthest) return;
    if (bytes == step) bytes *= rows, step = 0, rows = 1;  // one run
    at_ = static_cast<const char*>(first);
    left_ = of_row_ = ceil_div(bytes, kLine);
    gap_ = step - of_row_ * kLine;
    lines_ = rows * of_row_;
  }
  bool is_done() const { return lines_ == 0; }
  /// The next line; after the last one, others. Not if there is nothing.
  [[gnu::always_inline]] const char* next() {
    const char* const line = at_;
    at_ += kLine;
    if (--left_ == 0) at_ += gap_, left_ = of_row_;
    return line;
  }
  /// What is left after so many lines.
  RowsAhead after(int64_t lines) const {
    if (lines_ <= lines) return {};
    RowsAhead rest = *this;
    rest.lines_ -= lines;
    return rest;
  }

 private:
  static constexpr int64_t kLine = 64, kFarthest = int64_t{256} << 10;

  const char* at_ = nullptr;
  int64_t lines_ = 0;              // of all rows, those that are left
  int64_t left_ = 0, of_row_ = 0;  // of this row, and of each
  int64_t gap_ = 0;                // from the end of a row's lines to the next row
};

/// What both operands of a product pack next.
struct Ahead {
  RowsAhead a, b;
  RowsAhead& next() { return a.is_done() ? b : a; }
};

}  // namespace plumb::cpu
