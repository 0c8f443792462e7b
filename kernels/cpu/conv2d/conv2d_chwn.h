// Direct convolution in the CHWN layout, vectorised over the images of a batch: our own kernels.
#pragma once

#include "kernels/conv2d.h"

namespace plumb::cpu {

/// Whether these kernels apply to activations a and c and weights w: a and c in CHWN, w plain, all f32 or all bf16.
inline bool conv2d_chwn_fits(const TensorSpec& a, const TensorSpec& w, const TensorSpec& c) {
  return a.layout == Layout::kChwn && c.layout == Layout::kChwn && w.layout == Layout::kNchw && a.dtype == w.dtype &&
         c.dtype == w.dtype && (w.dtype == DType::kF32 || w.dtype == DType::kBf16);
}

/// y from {x, w} or {x, w, b}: x and y CHWN, w plain (OC, IC / groups, KH, KW), f32 or bf16 (summed in f32), any
/// parameters and any extents; adds b and applies params.activation. No workspace, no conversion. The order of each sum
/// is the same for every number of threads. Null if it does not apply.
std::unique_ptr<Kernel> conv2d_chwn_forward(const Problem<Conv2dParams>& p);

/// dx from {dy, w}. Conditions as in conv2d_chwn_forward; ignores params.activation. Null if it does not apply.
std::unique_ptr<Kernel> conv2d_chwn_backward_input(const Problem<Conv2dParams>& p);

/// dw from {dy, x}. Conditions as in conv2d_chwn_forward; ignores params.activation. Null if it does not apply.
std::unique_ptr<Kernel> conv2d_chwn_backward_weight(const Problem<Conv2dParams>& p);

}  // namespace plumb::cpu
