// Slices by their numbers, and sums of slices by the number of each: each is the other's gradient.
#pragma once

#include "../core/tape.h"

namespace plumb {

/// The slices of x along `dim` (negative: counted from the end) that `index` names, in its order and as often as it
/// names them: y[..., i, ...] = x[..., index[i], ...]. Index is i64 (N). Any rank from 1, dtype and layout; y has the
/// same, and N slices. Keeps the index. Throws on an index outside of x when the kernel runs (in a captured step: in
/// run()).
Tensor index_select(const Tensor& x, int dim, const Tensor& index);

/// A tensor of `slices` slices along `dim` to each of which those slices of x are added that `index` gives its number:
/// y[..., k, ...] is the sum of x[..., i, ...] over all i with index[i] = k, 0 where there is none. Index is i64 (N), N
/// the extent of x there. f32, f64 and bf16 (summed in f32), any layout. The sums are in the order of the index, one
/// term after the other (in f32 a million equal terms are off by a per cent), and do not depend on the number of
/// threads. Keeps the index. Throws as index_select does.
Tensor index_add(const Tensor& x, int dim, const Tensor& index, int64_t slices);

}  // namespace plumb
