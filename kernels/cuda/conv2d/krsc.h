// Weights as the tensor cores like them in nhwc, (OC, KH, KW, IC): kept as a pack of the row-major ones, where channels
// may be added until they fill pieces of 16 bytes; and images whose channels are padded likewise.
#pragma once

#include <functional>

#include "kernels/cuda/vendor/offers.h"

namespace plumb::cuda {

/// Weights (OC, IC, KH, KW) as they lie in memory as (OC, KH, KW, IC).
inline TensorSpec krsc(const TensorSpec& w) { return {w.shape, w.dtype, Layout::kNhwc}; }
/// s with `channels` channels, the others zeros.
inline TensorSpec with_channels(const TensorSpec& s, int64_t channels) { return s.with(s.shape.with(1, channels)); }
/// Whether row-major weights lie otherwise than in krsc.
inline bool is_packed_for_krsc(const TensorSpec& w) { return w.shape[1] > 1 && w.shape[2] * w.shape[3] > 1; }
/// The pack of w in krsc with `channels` input channels.
Layout krsc_pack(const TensorSpec& w, int64_t channels, Device device);

/// Offers kernels of a convolution, for weights in krsc where w is nhwc. Inputs and outputs are those of the direction.
using OfferConv2d = std::function<void(const ConvSpecs&, Candidates&)>;

/// What `inner` offers for weights in krsc, as candidates whose weights are a pack, "..._krsc". Forward and
/// backward_input, in nhwc.
void offer_krsc(const ConvSpecs& s, const Problem<Conv2dParams>& p, const OfferConv2d& inner, Candidates& candidates);
/// To how many channels a few may be padded: to fill 16 bytes or half of them in bf16, and what comes next in f32.
std::vector<int64_t> padded_channels(ConvDirection direction, const ConvSpecs& s, const Conv2dParams& p);
/// What `inner` offers for `channels` input channels, more than x has, as "..._c4": images are padded with zeros in the
/// workspace, weights in their pack; gradients by the weights lose what is too much. Forward and backward_weight of one
/// group, in nhwc.
void offer_padded(ConvDirection direction, const ConvSpecs& s, const Problem<Conv2dParams>& p, int64_t channels,
                  const OfferConv2d& inner, Candidates& candidates);

}  // namespace plumb::cuda
