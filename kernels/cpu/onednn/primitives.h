// Descriptions of primitives whose arguments differ between oneDNN 2.x and 3.x, and descriptors of strided loops.
#pragma once

#include "kernels/cpu/offer.h"
#include "kernels/cpu/onednn/dnnl.h"
#include "kernels/cpu/strided.h"

namespace plumb::cpu {

/// Describes an eltwise primitive for tensors of one format; alpha and beta are the algorithm's attributes.
inline dnnl::eltwise_forward::primitive_desc eltwise_desc(dnnl::algorithm algorithm, const MemoryDesc& data,
                                                          float alpha, float beta) {
  constexpr auto kind = dnnl::prop_kind::forward_training;
#if PLUMB_DNNL_V3
  return primitive_desc<dnnl::eltwise_forward>(dnnl_attr(), kind, algorithm, data, data, alpha, beta);
#else
  return primitive_desc<dnnl::eltwise_forward>(dnnl_attr(), kind, algorithm, data, alpha, beta);
#endif
}
/// The same for its gradient.
inline dnnl::eltwise_backward::primitive_desc eltwise_backward_desc(dnnl::algorithm algorithm, const MemoryDesc& data,
                                                                    float alpha, float beta) {
  const auto hint = eltwise_desc(algorithm, data, alpha, beta);
#if PLUMB_DNNL_V3
  return backward_desc<dnnl::eltwise_backward>(dnnl_attr(), hint, algorithm, data, data, data, alpha, beta);
#else
  return backward_desc<dnnl::eltwise_backward>(dnnl_attr(), hint, algorithm, data, data, alpha, beta);
#endif
}

/// ReLU after a primitive.
inline dnnl::post_ops relu_after() {
  dnnl::post_ops ops;
#if PLUMB_DNNL_V3
  ops.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
#else
  ops.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
#endif
  return ops;
}
inline bool is_f32(const MemoryDesc& d) {
#if PLUMB_DNNL_V3
  return d.get_data_type() == memory::data_type::f32;
#else
  return d.data_type() == memory::data_type::f32;
#endif
}

/// Descriptor of operand k of a loop: the loop's dimensions, outermost first, with an extent of 1 where it broadcasts.
template <size_t N>
MemoryDesc dnnl_desc(const StridedLoop<N>& loop, size_t k, DType dtype) {
  const auto rank = static_cast<size_t>(loop.rank);
  memory::dims dims(rank), strides(rank);
  int64_t dense = 1;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t stride = loop.stride[k][d], extent = stride ? loop.extent[d] : 1;
    dims[rank - 1 - d] = extent;
    strides[rank - 1 - d] = stride ? stride : dense;
    dense *= extent;
  }
  return {dims, dnnl_dtype(dtype), strides};
}

/// Offers a kernel of one primitive, made by `make`; declines if oneDNN has none.
template <class Make>
Offer dnnl_offer(const Make& make, Place place = Place::kListed) {
  return {"onednn", Provider::kOneDnn, [make] { return declining(make); }, place};
}

}  // namespace plumb::cpu
