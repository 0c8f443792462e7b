#include "kernels/cpu/movement/reorder.h"

#include "kernels/cpu/onednn/primitives.h"

namespace plumb::cpu {
namespace {

std::unique_ptr<Kernel> reorder_kernel(const StridedLoop<2>& loop, DType from, DType to) {
  const MemoryDesc x = dnnl_desc(loop, 0, from), y = dnnl_desc(loop, 1, to);
  return single_primitive<dnnl::reorder>(dnnl::reorder::primitive_desc(dnnl_engine(), x, dnnl_engine(), y, dnnl_attr()),
                                         {{DNNL_ARG_FROM, x, DnnlArg::kIn, 0}, {DNNL_ARG_TO, y, DnnlArg::kOut, 0}});
}

bool is_moved(DType t) { return t == DType::kF32 || t == DType::kBf16; }

}  // namespace

Offer reorder_offer(const TensorSpec& x, const Strides& strides, const TensorSpec& y) {
  if (!is_moved(x.dtype) || !is_moved(y.dtype) || y.numel() == 0) return {};
  const auto loop = strided_loop<2>(y, {strides, strides_of(y)});
  return dnnl_offer([=, from = x.dtype, to = y.dtype] { return reorder_kernel(loop, from, to); });
}

}  // namespace plumb::cpu
