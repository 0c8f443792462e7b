#include "kernels/cpu/pooling/pool2d_onednn.h"

#include "kernels/cpu/onednn/normalizing.h"
#include "kernels/cpu/onednn/where_finite.h"
#include "kernels/cpu/range.h"

namespace plumb::cpu {
namespace {

// The windows in oneDNN's words.
struct Windows {
  memory::dims stride, kernel, before, after, dilation{0, 0};
  explicit Windows(const Pool2dParams& p)
      : stride{p.stride[0], p.stride[1]},
        kernel{p.kernel[0], p.kernel[1]},
        before{p.padding[0], p.padding[2]},
        after{p.padding[1], p.padding[3]} {}

  PoolingForward::primitive_desc forward(dnnl::prop_kind kind, dnnl::algorithm algorithm, const MemoryDesc& x,
                                         const MemoryDesc& y) const {
    return primitive_desc<PoolingForward>(dnnl_attr(), kind, algorithm, x, y, stride, kernel, dilation, before, after);
  }
  PoolingBackward::primitive_desc backward(dnnl::algorithm algorithm, const MemoryDesc& x, const MemoryDesc& y) const {
    const auto hint = forward(dnnl::prop_kind::forward_training, algorithm, x, y);
    return backward_desc<PoolingBackward>(dnnl_attr(), hint, algorithm, x, y, stride, kernel, dilation, before, after);
  }
};

dnnl::algorithm mean_of(const Pool2dParams& p) {
  return p.count_include_pad ? dnnl::algorithm::pooling_avg_include_padding
                             : dnnl::algorithm::pooling_avg_exclude_padding;
}

bool is_taken(const TensorSpec& x, const Pool2dParams& p) {
  constexpr int32_t kMost = 1 << 10;  // it computes with 32 bits in places
  return (x.dtype == DType::kF32 || x.dtype == DType::kBf16) && x.numel() > 0 && p.kernel[0] <= kMost &&
         p.kernel[1] <= kMost;
}
// Gradients of several windows are added in the dtype of dx: with bf16 only few.
bool is_exact(const TensorSpec& dx, const Pool2dParams& p) {
  const int64_t windows = ceil_div(p.kernel[0], p.stride[0]) * ceil_div(p.kernel[1], p.stride[1]);
  return dx.dtype == DType::kF32 || windows <= 9;
}
// With bf16 it has wrong positions of 32 bits.
bool has_bytes(std::span<const TensorSpec> operands) { return operands.size() == 1 || operands[1].dtype == DType::kU8; }

constexpr const char* kPrefix = "onednn:pooling:";

// The same memory as a tensor of planes as oneDNN pools it fastest: planes are independent, so that it does not matter
// which of them are said to be channels of one image.
MemoryDesc planes_of(const TensorSpec& s) {
  const int64_t N = s.shape[0], C = s.shape[1], H = s.shape[2], W = s.shape[3];
  constexpr int64_t kBlock = 16;  // channels that it works on at once
  if (s.layout == Layout::kChwn) return dnnl_desc({Shape{C, N, H, W}, s.dtype, Layout::kNhwc});
  if (s.layout == Layout::kNchw && N * C % kBlock == 0) return dnnl_desc(s.with(Shape{N * C / kBlock, kBlock, H, W}));
  return dnnl_desc(s);
}

std::unique_ptr<Kernel> forward_kernel(const Problem<Pool2dParams>& p, dnnl::algorithm algorithm) {
  if (!is_taken(p.in[0], p.params) || !has_bytes(p.out)) return nullptr;
  const MemoryDesc x = planes_of(p.in[0]), y = planes_of(p.out[0]);
  const bool positions = p.out.size() == 2;
  const auto kind = positions ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  const auto pd = Windows(p.params).forward(kind, algorithm, x, y);
  const MemoryDesc at = positions ? planes_of(p.out[1]) : MemoryDesc();
  if (pd.workspace_desc() != at) return nullptr;
  return single_primitive<PoolingForward>(pd,
                                          {{DNNL_ARG_SRC, x, DnnlArg::kIn, 0},
                                           {DNNL_ARG_DST, y, DnnlArg::kOut, 0},
                                           {DNNL_ARG_WORKSPACE, at, DnnlArg::kOut, 1}},
                                          kPrefix);
}

std::unique_ptr<Kernel> backward_kernel(const Problem<Pool2dParams>& p, dnnl::algorithm algorithm) {
  if (!is_taken(p.out[0], p.params) || !has_bytes(p.in) || !is_exact(p.out[0], p.params)) return nullptr;
  const MemoryDesc x = planes_of(p.out[0]), y = planes_of(p.in[0]);
  const auto pd = Windows(p.params).backward(algorithm, x, y);
  const MemoryDesc at = p.in.size() == 2 ? planes_of(p.in[1]) : MemoryDesc();
  if (pd.workspace_desc() != at) return nullptr;
  return single_primitive<PoolingBackward>(pd,
                                           {{DNNL_ARG_DIFF_DST, y, DnnlArg::kIn, 0},
                                            {DNNL_ARG_DIFF_SRC, x, DnnlArg::kOut, 0},
                                            {DNNL_ARG_WORKSPACE, at, DnnlArg::kIn, 1}},
                                           kPrefix);
}

}  // namespace

std::unique_ptr<Kernel> onednn_max_forward(const Problem<Pool2dParams>& p, const Candidates::Make& own) {
  return where_finite(forward_kernel(p, dnnl::algorithm::pooling_max), own(), 0, p.in[0]);
}
std::unique_ptr<Kernel> onednn_max_backward(const Problem<Pool2dParams>& p) {
  return backward_kernel(p, dnnl::algorithm::pooling_max);
}
std::unique_ptr<Kernel> onednn_avg_forward(const Problem<Pool2dParams>& p) {
  return forward_kernel(p, mean_of(p.params));
}
std::unique_ptr<Kernel> onednn_avg_backward(const Problem<Pool2dParams>& p) {
  return backward_kernel(p, mean_of(p.params));
}

}  // namespace plumb::cpu
