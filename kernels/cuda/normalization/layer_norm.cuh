// What both directions of layer normalisation share: who has a row. A warp, or where it is long a block.
#pragma once

#include "kernels/cuda/normalization/channel_sums.cuh"
#include "kernels/layer_norm.h"

namespace plumb::cuda::layers {

namespace math = functors::math;
using plumb::detail::LayerNormGradients;
using plumb::detail::LayerNormRows;

inline bool is_long(const LayerNormRows& v) { return v.columns >= cuda::kLeastOfBlock; }
inline int64_t rows_at_a_time(const LayerNormRows& v) { return is_long(v) ? 1 : kRowWarps; }
inline Grid grid_of_rows(const Runtime& r, const LayerNormRows& v) {
  return grid_of(r, (v.rows + rows_at_a_time(v) - 1) / rows_at_a_time(v), kRowThreads);
}

}  // namespace plumb::cuda::layers
