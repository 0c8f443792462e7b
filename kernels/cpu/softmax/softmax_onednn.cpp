#include "kernels/cpu/softmax/softmax_onednn.h"

#include "kernels/cpu/onednn/normalizing.h"
#include "kernels/cpu/onednn/where_finite.h"

namespace plumb::cpu {
namespace {

constexpr const char* kPrefix = "onednn:softmax:";

dnnl::algorithm algorithm_of(const SoftmaxParams& p) {
  return p.log ? dnnl::algorithm::softmax_log : dnnl::algorithm::softmax_accurate;
}
DnnlSoftmaxForward::primitive_desc forward_desc(const SoftmaxParams& p, const MemoryDesc& data, dnnl::prop_kind kind) {
  return primitive_desc<DnnlSoftmaxForward>(dnnl_attr(), kind, algorithm_of(p), data, data, p.dim);
}

}  // namespace

std::unique_ptr<Kernel> onednn_softmax_forward(const Problem<SoftmaxParams>& p, const Candidates::Make& own) {
  const TensorSpec& x = p.in[0];
  if (!dnnl_has(x.dtype) || x.numel() == 0 || p.params.log) return nullptr;
  const MemoryDesc data = dnnl_desc(x);
  const auto pd = forward_desc(p.params, data, dnnl::prop_kind::forward_inference);
  auto kernel = single_primitive<DnnlSoftmaxForward>(
      pd, {{DNNL_ARG_SRC, data, DnnlArg::kIn, 0}, {DNNL_ARG_DST, data, DnnlArg::kOut, 0}}, kPrefix);
  return where_finite(std::move(kernel), own(), 0, x, Takes::kMinusInfinity);
}

std::unique_ptr<Kernel> onednn_softmax_backward(const Problem<SoftmaxParams>& p, const Candidates::Make& own) {
  const TensorSpec& y = p.in[1];
  if (!dnnl_has(y.dtype) || y.numel() == 0) return nullptr;
  const MemoryDesc data = dnnl_desc(y);
  const auto hint = forward_desc(p.params, data, dnnl::prop_kind::forward_training);
  const auto pd =
      backward_desc<DnnlSoftmaxBackward>(dnnl_attr(), hint, algorithm_of(p.params), data, data, data, p.params.dim);
  auto kernel = single_primitive<DnnlSoftmaxBackward>(pd,
                                                      {{DNNL_ARG_DIFF_DST, data, DnnlArg::kIn, 0},
                                                       {DNNL_ARG_DST, data, DnnlArg::kIn, 1},
                                                       {DNNL_ARG_DIFF_SRC, data, DnnlArg::kOut, 0}},
                                                      kPrefix);
  if (!p.params.log) return kernel;
  return where_finite(std::move(kernel), own(), 1, y, Takes::kMinusInfinity);
}

}  // namespace plumb::cpu
