// Convolution on the host: own Winograd (NHWC, and NCHW with conversions around it), own direct kernels (CHWN), and
// oneDNN in three ways: on the tensors' own layouts with the weights packed as it likes ("direct"), with every format
// left to it and conversions around it ("blocked"), and so with its own Winograd ("winograd_blocked"). Few output
// pixels are a skinny product over the plain weights ("im2col"), windows of one pixel a product of all pixels as they
// stand ("inner_product", "gemm", "packed_gemm"), and any windows one of pixels by taps ("implicit_gemm").
#include "kernels/conv2d.h"

#include <array>
#include <string_view>

#include "kernels/cpu/conv2d/conv2d_chwn.h"
#include "kernels/cpu/conv2d/conv2d_im2col.h"
#include "kernels/cpu/conv2d/implicit_gemm.h"
#include "kernels/cpu/conv2d/winograd.h"
#include "kernels/cpu/gemm/packed_gemm.h"
#include "kernels/cpu/gemm/product.h"
#include "kernels/cpu/gemm/skinny_gemm.h"
#include "kernels/cpu/offer.h"
#include "kernels/cpu/onednn/dnnl.h"
#include "kernels/cpu/wrappers/layout_adapter.h"
#include "kernels/cpu/wrappers/relu_epilogue.h"
#include "kernels/cpu/wrappers/via_f32.h"

namespace plumb::cpu {
namespace {

using Params = Conv2dParams;

// The three tensors of a convolution, whichever of them is the result, and oneDNN's view of the attributes.
struct Conv {
  TensorSpec x, w, y;
  bool bias = false;
  Params params;
  MathMode math;
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
    return bias ? MemoryDesc({w.shape[0]}, dnnl_dtype(w.dtype), memory::format_tag::a) : MemoryDesc();
  }
  bool fits() const {
    return dnnl_has(x.dtype) && is_floating(x.dtype) && x.dtype == w.dtype && x.numel() && w.numel() && y.numel();
  }
};

// The primitive descriptors.

using Forward = dnnl::convolution_forward;
using BackwardInput = dnnl::convolution_backward_data;
using BackwardWeight = dnnl::convolution_backward_weights;

// How oneDNN is asked: by which algorithm, on the tensors' own layouts or with every format left to it.
struct Way {
  dnnl::algorithm algorithm;
  bool blocked;
  MemoryDesc of(const TensorSpec& s) const { return blocked ? dnnl_any(s) : dnnl_desc(s); }
};
constexpr Way kDirect{dnnl::algorithm::convolution_direct, false}, kBlocked{dnnl::algorithm::convolution_direct, true},
    kWinogradBlocked{dnnl::algorithm::convolution_winograd, true};

Forward::primitive_desc forward_pd(const Conv& c, Way way) {
  return primitive_desc<Forward>(dnnl_attr(c.math), dnnl::prop_kind::forward_training, way.algorithm, way.of(c.x),
                                 c.weight_any(), c.bias_desc(), way.of(c.y), c.strides(), c.dilations(),
                                 c.padding_before(), c.padding_after());
}

// The library takes the same arguments for both: x and y, or their gradients.
template <class Primitive>
typename Primitive::primitive_desc backward_pd(const Conv& c, Way way) {
  Conv plain = c;
  plain.bias = false;
  return backward_desc<Primitive>(dnnl_attr(c.math), forward_pd(plain, way), way.algorithm, way.of(c.x), c.weight_any(),
                                  way.of(c.y), c.strides(), c.dilations(), c.padding_before(), c.padding_after());
}

// What oneDNN (2.6) gets wrong, found by holding random problems against f64; in bf16 but for the last.
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

std::unique_ptr<Kernel> backward_weight(const Conv& c, Way way) {
  if (is_misread(c)) return nullptr;
  const auto pd = backward_pd<BackwardWeight>(c, way);
  if (is_missummed(c) && (is_named(pd, "amx") || is_named(pd, "jit_bf16"))) return nullptr;
  return converting_kernel<BackwardWeight>(
      pd, {{DNNL_ARG_DIFF_DST, dnnl_desc(c.y), pd.diff_dst_desc()}, {DNNL_ARG_SRC, dnnl_desc(c.x), pd.src_desc()}},
      {DNNL_ARG_DIFF_WEIGHTS, c.weight_plain(), pd.diff_weights_desc()});
}

// Whether pixels are rows of channels in memory.
bool has_rows(const TensorSpec& s) {
  return s.layout == Layout::kNhwc || (s.layout == Layout::kNchw && s.shape[2] * s.shape[3] == 1);
}
TensorSpec rows_of(const TensorSpec& s) { return {Shape{s.shape[0] * s.shape[2] * s.shape[3], s.shape[1]}, s.dtype}; }
// Whether it is a fully connected layer of each pixel.
bool is_of_pixels(const Conv& c) {
  return c.fits() && c.params.groups == 1 && c.w.shape[2] * c.w.shape[3] == 1 && c.params.stride == Size2d(1) &&
         c.params.padding == Padding2d(0) && has_rows(c.x) && has_rows(c.y);
}
std::unique_ptr<Kernel> inner_product_of_pixels(InnerProduct which, const Conv& c) {
  const TensorSpec w(Shape{c.w.shape[0], c.w.shape[1]}, c.w.dtype);
  return inner_product_kernel(which, rows_of(c.x), w, rows_of(c.y), c.bias, c.math);
}
Product product_of_pixels(InnerProduct which, const Conv& c) {
  Product p = layer_product(which, rows_of(c.y).shape[0], c.w);
  p.bias = c.bias, p.math = c.math;
  return p;
}
std::unique_ptr<Kernel> gemm_of_pixels(InnerProduct which, const Conv& c) {
  return gemm_kernel(product_of_pixels(which, c));
}

bool has_few_pixels(const Conv& c) { return is_passage(c.y.shape[0] * c.y.shape[2] * c.y.shape[3], c.w); }

// Winograd wins where it wastes little: F(4x4) on large outputs, F(2x2) on small ones, neither on few channels or
// pixels.
Place place_of_winograd(const Conv& c, int m) {
  if (std::min(c.w.shape[0], c.w.shape[1]) < 16 || has_few_pixels(c)) return Place::kLast;
  const bool is_large = std::min(c.y.shape[2], c.y.shape[3]) >= 8;
  return (m == 4) == is_large ? Place::kFirst : Place::kListed;
}

// Before oneDNN's kernels of plain tensors where it copies nothing and fills its vectors.
Place place_of_implicit_gemm(const Conv& c) {
  const bool is_wide = std::min(c.w.shape[0], c.w.shape[1]) >= 32 && c.params.groups == 1;
  return is_wide && c.x.layout == Layout::kNhwc && !has_few_pixels(c) ? Place::kListed : Place::kLast;
}

// A problem that outlives its caller's specs.
struct OwnedProblem {
  Params params;
  std::vector<TensorSpec> in, out;
  int threads;
  MathMode math;
  explicit OwnedProblem(const Problem<Params>& p)
      : params(p.params),
        in(p.in.begin(), p.in.end()),
        out(p.out.begin(), p.out.end()),
        threads(p.threads),
        math(p.math) {}
  Problem<Params> problem() const { return {params, in, out, threads, math}; }
  // The same with its images in NHWC; the weights and the bias have no layout.
  OwnedProblem in_nhwc(InnerProduct which) const {
    OwnedProblem other = *this;
    TensorSpec& second = which == InnerProduct::kBackwardWeight ? other.in[1] : other.out[0];
    for (TensorSpec* image : {&other.in[0], &second}) image->layout = Layout::kNhwc;
    return other;
  }
};

template <class Winograd, class Chwn, class Dnnl>
void offer(const Problem<Params>& p, const Conv& c, InnerProduct which, Candidates& candidates, Winograd winograd,
           Chwn chwn, Dnnl dnnl_kernel) {
  const auto copy = std::make_shared<const OwnedProblem>(p);
  const auto by_nhwc = [&](auto make) -> Candidates::Make {
    return [=] {
      if (c.x.layout != Layout::kNchw) return make(copy->problem());
      const OwnedProblem nhwc = copy->in_nhwc(which);
      return layout_adapter(make(nhwc.problem()), nhwc.in, nhwc.out[0], copy->in, copy->out[0]);
    };
  };
  const auto by_winograd = [&](int m) { return by_nhwc([=](const auto& q) { return winograd(q, m); }); };
  const auto by_implicit_gemm = by_nhwc([=](const auto& q) { return conv2d_implicit_gemm(which, q); });
  const auto by_onednn = [&](Way way) -> Candidates::Make {
    if (!c.fits()) return nullptr;
    return [=] { return declining([&] { return dnnl_kernel(c, way); }); };
  };
  constexpr auto kOwn = Provider::kPlumbline;
  offer_in_order(candidates, {{"im2col", kOwn, [=] { return conv2d_im2col(which, c.x, c.w, c.y, c.params, c.bias); },
                               has_few_pixels(c) ? Place::kFirst : Place::kLast},
                              {"winograd_f4x4", kOwn, by_winograd(4), place_of_winograd(c, 4)},
                              {"winograd_f2x2", kOwn, by_winograd(2), place_of_winograd(c, 2)},
                              {"direct_chwn", kOwn, [=] { return chwn(copy->problem()); }},
                              {"implicit_gemm", kOwn, is_of_pixels(c) ? Candidates::Make() : by_implicit_gemm,
                               place_of_implicit_gemm(c)},
                              {"direct", Provider::kOneDnn, by_onednn(kDirect)},
                              {"blocked", Provider::kOneDnn, by_onednn(kBlocked)},
                              {"winograd_blocked", Provider::kOneDnn, by_onednn(kWinogradBlocked)}});
}

// What windows of one pixel have besides.
void offer_of_pixels(const Conv& c, InnerProduct which, int threads, Candidates& candidates) {
  if (!is_of_pixels(c)) return;
  const bool is_relu = which == InnerProduct::kForward && c.params.activation == Activation::kRelu;
  const auto by_product = [&](auto* make) -> Candidates::Make {
    return [=] {
      auto kernel = declining([&] { return make(which, c); });
      return is_relu ? relu_epilogue(std::move(kernel), c.y) : std::move(kernel);
    };
  };
  const auto packed = [=] {
    Product p = product_of_pixels(which, c);
    p.threads = threads;
    return packed_gemm_kernel(p, is_relu);
  };
  offer_in_order(candidates, {{"inner_product", Provider::kOneDnn, by_product(inner_product_of_pixels)},
                              {"gemm", Provider::kOneDnn, by_product(gemm_of_pixels)},
                              {"packed_gemm", Provider::kPlumbline, packed}});
}

}  // namespace
}  // namespace plumb::cpu

namespace plumb {

void Conv2dForward::cpu(const Problem<Params>& p, Candidates& candidates) {
  const cpu::Conv c{p.in[0], p.in[1], p.out[0], p.in.size() == 3, p.params, p.math};
  cpu::offer(p, c, cpu::InnerProduct::kForward, candidates, cpu::winograd_forward, cpu::conv2d_chwn_forward,
             cpu::forward);
  cpu::offer_of_pixels(c, cpu::InnerProduct::kForward, p.threads, candidates);
}

void Conv2dBackwardInput::cpu(const Problem<Params>& p, Candidates& candidates) {
  const cpu::Conv c{p.out[0], p.in[1], p.in[0], false, p.params, p.math};
  cpu::offer(p, c, cpu::InnerProduct::kBackwardInput, candidates, cpu::winograd_backward_input,
             cpu::conv2d_chwn_backward_input, cpu::backward_input);
  cpu::offer_of_pixels(c, cpu::InnerProduct::kBackwardInput, p.threads, candidates);
}

void Conv2dBackwardWeight::cpu(const Problem<Params>& p, Candidates& candidates) {
  const auto offer = [](const Problem<Params>& q, Candidates& to) {
    const cpu::Conv c{q.in[1], q.out[0], q.in[0], false, q.params, q.math};
    cpu::offer(q, c, cpu::InnerProduct::kBackwardWeight, to, cpu::winograd_backward_weight,
               cpu::conv2d_chwn_backward_weight, cpu::backward_weight);
  };
  offer(p, candidates);
  cpu::offer_of_pixels({p.in[1], p.out[0], p.in[0], false, p.params, p.math}, cpu::InnerProduct::kBackwardWeight,
                       p.threads, candidates);
  if (p.out[0].dtype != DType::kBf16) return;
  // oneDNN 2.x has only plain loops for some of these on processors without AMX.
  const std::array in{p.in[0].with(DType::kF32), p.in[1].with(DType::kF32)};
  const std::array out{p.out[0].with(DType::kF32)};
  Candidates in_f32;
  offer({p.params, in, out, p.threads, p.math}, in_f32);
  for (const auto& c : in_f32.all()) {
    candidates.add(c.provider, "via_f32_" + c.algorithm,
                   [make = c.make, in, out = out[0]] { return cpu::via_f32(make(), in, out); });
  }
}

}  // namespace plumb
