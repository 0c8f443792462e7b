// Pooling, normalisation and softmax under one name each, where oneDNN 2.6 and 3.x name them differently.
#pragma once

#include "kernels/cpu/onednn/dnnl.h"

namespace plumb::cpu {

#if PLUMB_DNNL_V3
using PoolingForward = dnnl::pooling_forward;
using PoolingBackward = dnnl::pooling_backward;
using DnnlSoftmaxForward = dnnl::softmax_forward;
using DnnlSoftmaxBackward = dnnl::softmax_backward;
#else  // the second versions in 2.x take the same arguments as the only ones in 3.x
using PoolingForward = dnnl::pooling_v2_forward;
using PoolingBackward = dnnl::pooling_v2_backward;
using DnnlSoftmaxForward = dnnl::softmax_v2_forward;
using DnnlSoftmaxBackward = dnnl::softmax_v2_backward;
#endif

/// Batch normalisation; x, y and the gradients all have the desc `data`.
inline dnnl::batch_normalization_forward::primitive_desc batch_norm_desc(dnnl::prop_kind kind, const MemoryDesc& data,
                                                                         float epsilon,
                                                                         dnnl::normalization_flags flags) {
#if PLUMB_DNNL_V3
  return primitive_desc<dnnl::batch_normalization_forward>(dnnl_attr(), kind, data, data, epsilon, flags);
#else
  return primitive_desc<dnnl::batch_normalization_forward>(dnnl_attr(), kind, data, epsilon, flags);
#endif
}
/// The desc of the shift for a backward primitive: 2.x requires one, though it reads none of it; 3.x refuses it.
inline MemoryDesc backward_shift_desc(const MemoryDesc& channels) { return PLUMB_DNNL_V3 ? MemoryDesc() : channels; }

inline dnnl::batch_normalization_backward::primitive_desc batch_norm_backward_desc(
    const dnnl::batch_normalization_forward::primitive_desc& forward, const MemoryDesc& data, float epsilon,
    dnnl::normalization_flags flags) {
  using Backward = dnnl::batch_normalization_backward;
#if PLUMB_DNNL_V3
  return backward_desc<Backward>(dnnl_attr(), forward, dnnl::prop_kind::backward, data, data, data, epsilon, flags);
#else
  return backward_desc<Backward>(dnnl_attr(), forward, dnnl::prop_kind::backward, data, data, epsilon, flags);
#endif
}

/// Layer normalisation of the rows of `data`, a matrix; `rows` is the desc of the statistics.
inline dnnl::layer_normalization_forward::primitive_desc layer_norm_desc(dnnl::prop_kind kind, const MemoryDesc& data,
                                                                         const MemoryDesc& rows, float epsilon,
                                                                         dnnl::normalization_flags flags) {
#if PLUMB_DNNL_V3
  return primitive_desc<dnnl::layer_normalization_forward>(dnnl_attr(), kind, data, data, rows, epsilon, flags);
#else
  return primitive_desc<dnnl::layer_normalization_forward>(dnnl_attr(), kind, data, rows, epsilon, flags);
#endif
}
inline dnnl::layer_normalization_backward::primitive_desc layer_norm_backward_desc(
    const dnnl::layer_normalization_forward::primitive_desc& forward, dnnl::prop_kind kind, const MemoryDesc& data,
    const MemoryDesc& rows, float epsilon, dnnl::normalization_flags flags) {
  using Backward = dnnl::layer_normalization_backward;
#if PLUMB_DNNL_V3
  return backward_desc<Backward>(dnnl_attr(), forward, kind, data, data, data, rows, epsilon, flags);
#else
  return backward_desc<Backward>(dnnl_attr(), forward, kind, data, data, rows, epsilon, flags);
#endif
}

}  // namespace plumb::cpu
