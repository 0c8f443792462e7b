#include "kernels/cpu/conv2d/onednn_conv2d.h"

#include <string_view>

#include "kernels/cpu/wrappers/relu_epilogue.h"

namespace plumb::cpu {
namespace {

using Params = Conv2dParams;
using Way = OnednnWay;

// oneDNN's view of the attributes.
struct Conv : ConvTensors {
  memory::dims strides() const { return {params.stride[0], params.stride[1]}; }
  memory::dims dilations() const { return {params.dilation[0] - 1, params.dilation[1] - 1}; }
  memory::dims padding_before() const { return {params.padding[0], params.padding[2]}; }
  memory::dims padding_after() const { return {params.padding[1], params.padding[3]}; }

  memory::dims weight_dims() const {
    const int64_t g = params.groups;
    const Shape& s = w.shape;
    return g == 1 ? memory::dims{s[0], s[1], s[2], s[3]} : memory::dims{g, s[0] / g, s[1], s[2], s[3]};
  }
  MemoryDesc weight_any() const { return {weight_dims(), dnnl_dtype(w.dtype), memory::format_tag::any}; }
  MemoryDesc weight_plain() const {
    return {weight_dims(), dnnl_dtype(w.dtype),
            params.groups == 1 ? memory::format_tag::oihw : memory::format_tag::goihw};
  }
  MemoryDesc bias_desc() const {
    return has_bias ? MemoryDesc({w.shape[0]}, dnnl_dtype(w.dtype), memory::format_tag::a) : MemoryDesc();
  }
};

// The primitive descriptors.

using Forward = dnnl::convolution_forward;
using BackwardInput = dnnl::convolution_backward_data;
using BackwardWeight = dnnl::convolution_backward_weights;

MemoryDesc image_desc(const TensorSpec& s, Way way) { return way.blocked ? dnnl_any(s) : dnnl_desc(s); }

Forward::primitive_desc forward_pd(const Conv& c, Way way) {
  return primitive_desc<Forward>(dnnl_attr(c.math), dnnl::prop_kind::forward_training, way.algorithm,
                                 image_desc(c.x, way), c.weight_any(), c.bias_desc(), image_desc(c.y, way), c.strides(),
                                 c.dilations(), c.padding_before(), c.padding_after());
}

// The library takes the same arguments for both: x and y, or their gradients.
template <class Primitive>
typename Primitive::primitive_desc backward_pd(const Conv& c, Way way) {
  Conv plain = c;
  plain.has_bias = false;
  return backward_desc<Primitive>(dnnl_attr(c.math), forward_pd(plain, way), way.algorithm, image_desc(c.x, way),
                                  c.weight_any(), image_desc(c.y, way), c.strides(), c.dilations(), c.padding_before(),
                                  c.padding_after());
}

// What oneDNN (2.6) gets wrong, found by holding random problems against f64; in bf16 where nothing else is said.
// Its batched products ("brgconv") have no kernel for a row of outputs whose window lies below the image, in the
// padding altogether: a crash. Where it lies above, they give what was in memory.
bool has_rows_of_padding(const Conv& c) {
  const Params& p = c.params;
  const int64_t window = (c.w.shape[2] - 1) * p.dilation[0] + 1, last = (c.y.shape[2] - 1) * p.stride[0] - p.padding[0];
  return c.x.dtype == DType::kBf16 && (p.padding[0] >= window || last >= c.x.shape[2]);
}
// The weight's gradient is summed over other rows than those of the window where that is dilated along H: with AMX, and
// without it where rows are long.
bool is_missummed(const Conv& c) { return c.x.dtype == DType::kBf16 && c.params.dilation[0] > 1 && c.w.shape[2] > 1; }

// Its Winograd's gradient of x reads beside dy where more is padded on one side than on the other.
bool is_lopsided(const Conv& c) {
  const Padding2d& p = c.params.padding;
  return p[0] != p[1] || p[2] != p[3];
}

template <class Pd>
bool is_named(const Pd& pd, std::string_view part) {
  return std::string_view(pd.impl_info_str()).find(part) != std::string_view::npos;
}

// Kernels around them; null when oneDNN has no fast implementation that way, or not a right one.

std::unique_ptr<Kernel> forward(const Conv& c, Way way) {
  const auto pd = forward_pd(c, way);
  if (has_rows_of_padding(c) && is_named(pd, "brgconv")) return nullptr;
  auto kernel = converting_kernel<Forward>(pd,
                                           {{DNNL_ARG_SRC, dnnl_desc(c.x), pd.src_desc()},
                                            {DNNL_ARG_WEIGHTS, c.weight_plain(), pd.weights_desc(), true},
                                            {DNNL_ARG_BIAS, c.bias_desc(), c.bias_desc()}},
                                           {DNNL_ARG_DST, dnnl_desc(c.y), pd.dst_desc()});
  return c.params.activation == Activation::kRelu ? relu_epilogue(std::move(kernel), c.y) : std::move(kernel);
}

std::unique_ptr<Kernel> backward_input(const Conv& c, Way way) {
  const auto pd = backward_pd<BackwardInput>(c, way);
  if (is_lopsided(c) && is_named(pd, "wino")) return nullptr;
  return converting_kernel<BackwardInput>(pd,
                                          {{DNNL_ARG_DIFF_DST, dnnl_desc(c.y), pd.diff_dst_desc()},
                                           {DNNL_ARG_WEIGHTS, c.weight_plain(), pd.weights_desc(), true}},
                                          {DNNL_ARG_DIFF_SRC, dnnl_desc(c.x), pd.diff_src_desc()});
}

// oneDNN's bf16 kernels for AVX-512 (2.6) read what was never written where the image is narrower than a stride.
bool is_misread(const Conv& c) {
  return c.x.dtype == DType::kBf16 && c.w.shape[3] > 1 && c.x.shape[3] < c.params.stride[1];
}

// Windows of one pixel with a stride: the pixels that they meet are gathered in blocks of a vector's channels, into
// memory for as many as there are. With fewer it writes behind its memory, and sums what other threads have written
// there, in f32 (3.12 does too).
bool is_gathered_beyond(const Conv& c, const BackwardWeight::primitive_desc& pd, Way way) {
  const int64_t vector = is_named(pd, "avx512") ? 16 : 8;
  return is_named(pd, "jit_1x1") && !way.blocked && c.params.stride != Size2d(1) && c.w.shape[1] < vector;
}

std::unique_ptr<Kernel> backward_weight(const Conv& c, Way way) {
  if (is_misread(c)) return nullptr;
  const auto pd = backward_pd<BackwardWeight>(c, way);
  if (is_missummed(c) && (is_named(pd, "amx") || is_named(pd, "jit_bf16"))) return nullptr;
  if (is_gathered_beyond(c, pd, way)) return nullptr;
  return converting_kernel<BackwardWeight>(
      pd, {{DNNL_ARG_DIFF_DST, dnnl_desc(c.y), pd.diff_dst_desc()}, {DNNL_ARG_SRC, dnnl_desc(c.x), pd.src_desc()}},
      {DNNL_ARG_DIFF_WEIGHTS, c.weight_plain(), pd.diff_weights_desc()});
}

}  // namespace

bool onednn_takes(const ConvTensors& c) {
  return dnnl_has(c.x.dtype) && is_floating(c.x.dtype) && c.x.dtype == c.w.dtype && !c.is_empty();
}

std::unique_ptr<Kernel> onednn_conv2d(InnerProduct which, const ConvTensors& tensors, Way way) {
  const Conv c{tensors};
  switch (which) {
    case InnerProduct::kForward: return forward(c, way);
    case InnerProduct::kBackwardInput: return backward_input(c, way);
    case InnerProduct::kBackwardWeight: return backward_weight(c, way);
  }
  return nullptr;
}

}  // namespace plumb::cpu
