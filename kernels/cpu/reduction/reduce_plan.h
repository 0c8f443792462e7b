// What the reductions share: the dimensions of x in memory order, kept and reduced ones separated.
#pragma once

#include <vector>

#include "kernels/cpu/strided.h"

namespace plumb::cpu {

struct Axis {
  int64_t extent, x_stride, y_stride;
};

// The loop over x, with y as its second operand; y has stride 0 along reduced dimensions.
inline StridedLoop<2> reduce_loop(const TensorSpec& x, const TensorSpec& y, uint32_t dims) {
  Strides ys = strides_of(y);
  for (int d = 0; d < x.rank(); ++d) {
    if (dims >> d & 1) ys.of[d] = 0;
  }
  return strided_loop<2>(x, {strides_of(x), ys});
}

// The dimensions of x in memory order, innermost first and merged, separated into kept and reduced ones. There is at
// least one, and the innermost of all comes first in its list.
struct ReducePlan {
  std::vector<Axis> kept, reduced;
  bool inner_reduced = false;  // whether the innermost dimension of x is reduced
  int64_t outputs = 1, terms = 1;

  ReducePlan(const TensorSpec& x, const TensorSpec& y, uint32_t dims) {
    const auto loop = reduce_loop(x, y, dims);
    for (int d = 0; d < loop.rank; ++d) {
      const auto i = static_cast<size_t>(d);
      const Axis axis{loop.extent[d], loop.stride[0][i], loop.stride[1][i]};
      const bool is_reduced = axis.y_stride == 0 && axis.extent != 1;
      if (d == 0) inner_reduced = is_reduced;
      (is_reduced ? reduced : kept).push_back(axis);
      (is_reduced ? terms : outputs) *= axis.extent;
    }
  }
};

inline int64_t offset_of(std::span<const Axis> axes, int64_t index, int64_t Axis::*stride) {
  if (axes.size() == 1) return index * (axes[0].*stride);  // a division takes as long as a short run
  int64_t at = 0;
  for (const Axis& a : axes) {
    at += index % a.extent * (a.*stride);
    index /= a.extent;
  }
  return at;
}

}  // namespace plumb::cpu
