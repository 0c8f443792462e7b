// A tensor in memory seen along one of its dimensions.
#pragma once

#include "core/spec.h"

namespace plumb::cpu {

/// A tensor as (outer, extent, inner) in memory order: what lies around one dimension, its extent, and the elements of
/// a run, which lies within it.
struct Along {
  int64_t outer = 1, extent = 1, inner = 1;

  Along(const TensorSpec& s, int dim) : extent(s.shape[dim]) {
    const DimOrder order = memory_order(s.layout, s.rank());
    bool is_inner = false;
    for (int i = 0; i < s.rank(); ++i) {
      if (order[i] == dim) {
        is_inner = true;
      } else {
        (is_inner ? inner : outer) *= s.shape[order[i]];
      }
    }
  }
};

}  // namespace plumb::cpu
