// What descriptions of oneDNN's primitives differ in between 2.x and 3.x, and loops over strided tensors in its words.
#pragma once

#include "kernels/cpu/offer.h"
#include "kernels/cpu/onednn/dnnl.h"
#include "kernels/cpu/strided.h"

namespace plumb::cpu {

/// How an eltwise primitive is described for tensors of one format; alpha and beta are the algorithm's attributes.
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

/// ReLU behind a primitive.
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

/// Operand k of a loop, with the loop's dimensions, the outermost first; 1 where it is broadcast.
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

/// The offer of a kernel of one primitive, which `make` makes; it declines where oneDNN has none.
template <class Make>
Offer dnnl_offer(const Make& make, Place place = Place::kListed) {
  return {"onednn", Provider::kOneDnn, [make] { return declining(make); }, place};
}

/// The kernel of one primitive; null where its description is of plain loops.
template <class Primitive>
std::unique_ptr<Kernel> single_primitive(const typename Primitive::primitive_desc& pd, std::vector<DnnlArg> args) {
  if (is_plain_loops(pd)) return nullptr;
  auto kernel = std::make_unique<DnnlKernel>(std::string("onednn:") + pd.impl_info_str());
  args.push_back(kernel->scratchpad(pd));
  kernel->append(Primitive(pd), std::move(args));
  return kernel;
}

}  // namespace plumb::cpu
