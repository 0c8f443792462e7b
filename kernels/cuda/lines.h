// What is taken together along some dimensions of a tensor: a line for each element of the result.
#pragma once

#include <algorithm>
#include <utility>

#include "core/layout.h"
#include "core/spec.h"
#include "kernels/cuda/divide.h"

namespace plumb::cuda {

/// Dimensions, innermost first, and what one more along each adds to an offset in x and in y. Neighbours that go on
/// where the others end are one.
struct Steps {
  int rank = 0;
  Divisor extent[kMaxRank];
  int64_t x[kMaxRank] = {}, y[kMaxRank] = {};
  int64_t count = 1;

  Steps() = default;
  /// Over the elements of `box` in its memory order, by its dimensions' strides in x and in y.
  Steps(const TensorSpec& box, const Strides& xs, const Strides& ys = {}) {
    const DimOrder order = memory_order(box.layout, box.rank());
    for (int i = box.rank() - 1; i >= 0; --i) add(box.shape[order[i]], xs[order[i]], ys[order[i]]);
  }
  void add(int64_t n, int64_t of_x, int64_t of_y) {
    count *= n;
    if (n == 1) return;
    if (rank > 0 && of_x == x[rank - 1] * extent[rank - 1].by && of_y == y[rank - 1] * extent[rank - 1].by) {
      extent[rank - 1] = Divisor(extent[rank - 1].by * std::max<int64_t>(1, n));
      return;
    }
    extent[rank] = Divisor(std::max<int64_t>(1, n));
    x[rank] = of_x;
    y[rank++] = of_y;
  }
  /// Adds the offsets of number i.
  __device__ void move(int64_t i, int64_t& at_x, int64_t& at_y) const {
    if (rank == 0) return;
    for (int d = 0; d < rank - 1; ++d) {
      int64_t index = i;
      i = extent[d].divide(index);
      at_x += index * x[d];
      at_y += index * y[d];
    }
    at_x += i * x[rank - 1];
    at_y += i * y[rank - 1];
  }
  __device__ int64_t of_x(int64_t i) const {
    int64_t at = 0, unused = 0;
    move(i, at, unused);
    return at;
  }
};

/// The lines of x along the dimensions whose bits are set.
struct Lines {
  Steps lines, terms;
  bool is_across = false;  // neighbours in memory belong to different lines

  Lines(const TensorSpec& x, const TensorSpec& y, uint32_t dims) {
    const Strides xs = strides_of(x), ys = strides_of(y);
    const DimOrder order = memory_order(x.layout, x.rank());
    bool is_first = true;
    for (int i = x.rank() - 1; i >= 0; --i) {
      const int d = order[i];
      const bool is_reduced = dims >> d & 1;
      if (x.shape[d] != 1 && std::exchange(is_first, false)) is_across = !is_reduced;
      if (is_reduced) {
        terms.add(x.shape[d], xs[d], 0);
      } else {
        lines.add(x.shape[d], xs[d], ys[d]);
      }
    }
  }
};

/// A tensor as (outer, extent, inner), into which numbers of its elements are divided.
struct Split {
  Divisor extent, inner;

  Split() = default;
  Split(int64_t e, int64_t i) : extent(std::max<int64_t>(1, e)), inner(std::max<int64_t>(1, i)) {}
};

}  // namespace plumb::cuda
