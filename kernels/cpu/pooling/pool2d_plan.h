// What is known of a pooling before it runs: its extents, where windows lie, and by what means are divided.
#pragma once

#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

#include "kernels/cpu/pooling/pool2d_rules.h"
#include "kernels/cpu/range.h"
#include "kernels/pool2d.h"

namespace plumb::cpu::pool {

/// x (outer, IH, IW, inner) and y (outer, OH, OW, inner) with their windows.
struct Extents {
  int64_t outer, inner, IH, IW, OH, OW, KH, KW, SH, SW, top, left;
  Extents(const TensorSpec& x, const TensorSpec& y, const Pool2dParams& p);

  /// Whether windows stand side by side in x, and none reaches out of it.
  bool tiles() const { return KH == SH && KW == SW && top == 0 && left == 0 && OH * KH <= IH && OW * KW <= IW; }
  /// Whether all is blocks (Squares): rows are too short for vectors of their own.
  bool is_squares() const {
    return tiles() && inner == 1 && KH == 2 && KW == 2 && IH == 2 * OH && IW == 2 * OW && 2 * OW <= kLanes &&
           kLanes % OW == 0;
  }
  /// Whether an element may be in several windows.
  bool overlap() const { return KH > SH || KW > SW; }
  int64_t windows() const { return outer * OH * OW; }
  /// The rows of window oh that are inside x, and the columns of window ow.
  Range rows(int64_t oh) const { return {std::max<int64_t>(0, top - oh * SH), std::min(KH, IH + top - oh * SH)}; }
  Range columns(int64_t ow) const { return {std::max<int64_t>(0, left - ow * SW), std::min(KW, IW + left - ow * SW)}; }
};

/// What is known of a pooling before it runs.
struct Plan : Extents {
  std::vector<Range> windows_of_row, windows_of_column;  ///< the windows that row ih is in, and those of column iw
  /// By the number of the window's rows inside x and then by ow; shared, since every candidate has the plan.
  std::shared_ptr<const std::vector<float>> divisors, reciprocals;
  Squares squares;  ///< of blocks, if there are any

  Plan(const TensorSpec& x, const TensorSpec& y, const Pool2dParams& p);
  Sharing sharing() const {
    const float first = divisors->front();
    if (std::ranges::count(*divisors, first) != std::ssize(*divisors)) return Sharing::kEach;
    return std::has_single_bit(static_cast<uint64_t>(first)) ? Sharing::kExact : Sharing::kAlike;
  }
};

/// A walk's own view of the plan, which no store of the walk can change.
struct View : Extents {
  const Range *windows_of_row, *windows_of_column;
  Divisors divisors;
  const Squares& squares;

  explicit View(const Plan& p)
      : Extents(p),
        windows_of_row(p.windows_of_row.data()),
        windows_of_column(p.windows_of_column.data()),
        divisors{p.divisors->data(), p.reciprocals->data()},
        squares(p.squares) {}
  /// Of the windows of row oh, by ow.
  Divisors divisors_of(int64_t oh) const {
    const Range r = rows(oh);
    return divisors + (r.end - r.begin - 1) * OW;
  }
};

}  // namespace plumb::cpu::pool
