#include "kernels/cpu/softmax/softmax_onednn.h"

#include "kernels/cpu/onednn/normalizing.h"
#include "kernels/cpu/onednn/where_finite.h"

namespace plumb::cpu {
namespace {

DnnlSoftmaxForward::primitive_desc forward_desc(const SoftmaxParams& p, const MemoryDesc& data, bool backward) {
  const auto kind = backward ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  return primitive_desc<DnnlSoftmaxForward>(
      dnnl_attr(), kind, p.log ? dnnl::algorithm::softmax_log : dnnl::algorithm::softmax_accurate, data, data, p.dim);
}

template <class Primitive, class Desc>
std::unique_ptr<Kernel> kernel_of(const Desc& pd, std::vector<DnnlArg> args) {
  if (is_plain_loops(pd)) return nullptr;
  auto kernel = std::make_unique<DnnlKernel>(std::string("onednn:softmax:") + pd.impl_info_str());
  args.push_back(kernel->scratchpad(pd));
  kernel->append(Primitive(pd), std::move(args));
  return kernel;
}

}  // namespace

std::unique_ptr<Kernel> onednn_softmax_forward(const Problem<SoftmaxParams>& p, const Candidates::Make& own) {
  const TensorSpec& x = p.in[0];
  if (!dnnl_has(x.dtype) || x.numel() == 0 || p.params.log) return nullptr;
  const MemoryDesc data = dnnl_desc(x);
  return where_finite(
      kernel_of<DnnlSoftmaxForward>(forward_desc(p.params, data, false),
                                    {{DNNL_ARG_SRC, data, DnnlArg::kIn, 0}, {DNNL_ARG_DST, data, DnnlArg::kOut, 0}}),
      own(), 0, x, Takes::kMinusInfinity);
}

std::unique_ptr<Kernel> onednn_softmax_backward(const Problem<SoftmaxParams>& p, const Candidates::Make& own) {
  const TensorSpec& y = p.in[1];
  if (!dnnl_has(y.dtype) || y.numel() == 0) return nullptr;
  const MemoryDesc data = dnnl_desc(y);
  const auto pd = backward_desc<DnnlSoftmaxBackward>(
      dnnl_attr(), forward_desc(p.params, data, true),
      p.params.log ? dnnl::algorithm::softmax_log : dnnl::algorithm::softmax_accurate, data, data, data, p.params.dim);
  auto kernel = kernel_of<DnnlSoftmaxBackward>(pd, {{DNNL_ARG_DIFF_DST, data, DnnlArg::kIn, 0},
                                                    {DNNL_ARG_DST, data, DnnlArg::kIn, 1},
                                                    {DNNL_ARG_DIFF_SRC, data, DnnlArg::kOut, 0}});
  return p.params.log ? where_finite(std::move(kernel), own(), 1, y, Takes::kMinusInfinity) : std::move(kernel);
}

}  // namespace plumb::cpu
