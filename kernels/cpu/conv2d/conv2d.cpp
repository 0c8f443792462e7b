// Convolution on the host: own Winograd (NHWC, and NCHW with conversions around it), own direct kernels (CHWN), and
// oneDNN in three ways: on the tensors' own layouts with the weights packed as it likes ("direct"), with every format
// left to it and conversions around it ("blocked"), and so with its own Winograd ("winograd_blocked"). Few output
// pixels are a skinny product over the plain weights ("im2col"), windows of one pixel a product of all pixels as they
// stand ("inner_product", "gemm", "packed_gemm"), and any windows one of pixels by taps ("implicit_gemm"), by AMX also
// without a copy of any ("amx_direct"). Groups of few channels have kernels whose vectors hold several ("group_lanes"),
// few channels of a group those whose vectors are its outputs ("output_lanes"). In f64 all are products of windows
// ("im2col").
#include "kernels/conv2d.h"

#include "kernels/cpu/conv2d/amx_direct.h"
#include "kernels/cpu/conv2d/conv2d_chwn.h"
#include "kernels/cpu/conv2d/conv2d_f64.h"
#include "kernels/cpu/conv2d/conv2d_im2col.h"
#include "kernels/cpu/conv2d/group_lanes.h"
#include "kernels/cpu/conv2d/implicit_gemm.h"
#include "kernels/cpu/conv2d/onednn_conv2d.h"
#include "kernels/cpu/conv2d/output_lanes.h"
#include "kernels/cpu/conv2d/winograd.h"
#include "kernels/cpu/gemm/amx_block.h"
#include "kernels/cpu/gemm/packed_gemm.h"
#include "kernels/cpu/gemm/skinny_gemm.h"
#include "kernels/cpu/offer.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/wrappers/layout_adapter.h"
#include "kernels/cpu/wrappers/relu_epilogue.h"
#include "kernels/cpu/wrappers/via_f32.h"

namespace plumb::cpu {
namespace {

using Params = Conv2dParams;
using Conv = ConvTensors;

// Whether pixels are rows of channels in memory.
bool has_rows(const TensorSpec& s) {
  return s.layout == Layout::kNhwc || (s.layout == Layout::kNchw && s.shape[2] * s.shape[3] == 1);
}
TensorSpec rows_of(const TensorSpec& s) { return {Shape{s.shape[0] * s.shape[2] * s.shape[3], s.shape[1]}, s.dtype}; }
// Whether it is a fully connected layer of each pixel.
bool is_of_pixels(const Conv& c) {
  return onednn_takes(c) && c.params.groups == 1 && c.w.shape[2] * c.w.shape[3] == 1 && c.params.stride == Size2d(1) &&
         c.params.padding == Padding2d(0) && has_rows(c.x) && has_rows(c.y);
}
std::unique_ptr<Kernel> inner_product_of_pixels(InnerProduct which, const Conv& c) {
  const TensorSpec w(Shape{c.w.shape[0], c.w.shape[1]}, c.w.dtype);
  return inner_product_kernel(which, rows_of(c.x), w, rows_of(c.y), c.has_bias, c.math);
}
Product product_of_pixels(InnerProduct which, const Conv& c) {
  Product p = layer_product(which, rows_of(c.y).shape[0], c.w);
  p.bias = c.has_bias, p.math = c.math;
  return p;
}
std::unique_ptr<Kernel> gemm_of_pixels(InnerProduct which, const Conv& c) {
  return gemm_kernel(product_of_pixels(which, c));
}

bool has_few_pixels(const Conv& c) { return is_passage(c.y.shape[0] * c.y.shape[2] * c.y.shape[3], c.w); }

// Winograd wins where it wastes little: F(4x4) on large outputs, F(2x2) on small ones, neither on few channels or
// pixels. It multiplies in f32, which other kernels need not where a processor multiplies bf16.
Place place_of_winograd(const Conv& c, int m) {
  if (c.x.dtype == DType::kBf16 && multiplies_bf16()) return Place::kLast;
  if (std::min(c.w.shape[0], c.w.shape[1]) < 16 || has_few_pixels(c)) return Place::kLast;
  const bool is_large = std::min(c.y.shape[2], c.y.shape[3]) >= 8;
  return (m == 4) == is_large ? Place::kFirst : Place::kListed;
}

// Before oneDNN's kernels where those leave most of a vector empty. Depthwise they do not, but for the gradient of w.
Place place_of_group_lanes(InnerProduct which, const Conv& c) {
  const bool of_w = which == InnerProduct::kBackwardWeight, of_x = which == InnerProduct::kBackwardInput;
  const int64_t of_group = c.w.shape[1];
  if (of_group == 1) return of_w && c.w.shape[2] * c.w.shape[3] > 9 ? Place::kListed : Place::kLast;
  if (c.params.groups == 1 || (of_x && c.params.stride != Size2d(1))) return Place::kLast;
  return of_group <= 4 || c.x.layout == Layout::kNhwc ? Place::kListed : Place::kLast;
}

// Before oneDNN's kernels where groups have few inputs and fill vectors with their outputs.
Place place_of_output_lanes(InnerProduct which, const Conv& c) {
  const bool fills_vectors = c.params.groups > 1 && c.w.shape[0] / c.params.groups >= simd::kLanes;
  return which == InnerProduct::kForward && fills_vectors && c.w.shape[1] <= 8 ? Place::kListed : Place::kLast;
}

// oneDNN is slow on groups of few channels in planes.
Place place_of_direct(const Conv& c) {
  const bool has_few_channels = c.params.groups > 1 && c.w.shape[1] <= 8;
  return has_few_channels && c.x.layout == Layout::kNchw && c.x.dtype == DType::kF32 ? Place::kLast : Place::kListed;
}

bool may_be_by_amx(const Conv& c) { return c.x.dtype == DType::kBf16 && has_amx(); }
bool is_wide(const Conv& c) { return std::min(c.w.shape[0], c.w.shape[1]) >= 128; }
bool has_pixels(const Conv& c) { return c.w.shape[2] * c.w.shape[3] == 1; }
// Whether most of a tile of neighbouring pixels, of those so many apart, would be windows of no row.
bool has_small_images(const TensorSpec& s, const Size2d& stride) {
  return ceil_div(s.shape[2], stride[0]) * ceil_div(s.shape[3], stride[1]) < 32;
}

// By AMX our products are ahead of oneDNN 2.x in gradients of w, and of x where windows have strides; of many channels
// and small images in all three.
bool is_first_by_amx(InnerProduct which, const Conv& c) {
  if (!may_be_by_amx(c)) return false;
  const auto is_small = [&](const TensorSpec& s) {
    return is_wide(c) && !has_pixels(c) && has_small_images(s, Size2d(1));
  };
  switch (which) {
    case InnerProduct::kForward: return is_small(c.y);
    case InnerProduct::kBackwardInput: return c.params.stride != Size2d(1) || is_small(c.x);
    case InnerProduct::kBackwardWeight: return is_wide(c) || has_pixels(c);
  }
  return false;
}

// In gradients of x before these and oneDNN's, but on small images, and of windows of one pixel or with dilations.
Place place_of_amx_direct(InnerProduct which, const Conv& c) {
  if (which != InnerProduct::kBackwardInput || has_small_images(c.x, c.params.stride)) return Place::kLast;
  if (has_pixels(c) || c.params.dilation != Size2d(1)) return Place::kLast;
  const bool is_strided = c.params.stride != Size2d(1);
  return (is_strided ? c.w.shape[0] >= 64 : is_wide(c)) ? Place::kFirst : Place::kLast;
}

// Before oneDNN's kernels of plain tensors where it copies nothing and fills its vectors.
Place place_of_implicit_gemm(InnerProduct which, const Conv& c) {
  if (is_first_by_amx(which, c)) return Place::kFirst;
  if (c.x.dtype == DType::kBf16) return Place::kLast;
  const bool fills_vectors = std::min(c.w.shape[0], c.w.shape[1]) >= 32 && c.params.groups == 1;
  return fills_vectors && c.x.layout == Layout::kNhwc && !has_few_pixels(c) ? Place::kListed : Place::kLast;
}

// oneDNN's ways.
constexpr OnednnWay kDirect{dnnl::algorithm::convolution_direct, false},
    kBlocked{dnnl::algorithm::convolution_direct, true}, kWinogradBlocked{dnnl::algorithm::convolution_winograd, true};

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

template <class Winograd, class Chwn>
void offer(InnerProduct which, const Problem<Params>& p, Candidates& candidates, Winograd winograd, Chwn chwn) {
  const Conv c(which, p);
  if (c.x.dtype == DType::kF64) {
    candidates.add("im2col", [which, c, threads = p.threads] { return conv2d_f64(which, c, threads); });
    return;
  }
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
  const auto by_amx_direct = by_nhwc([=](const auto& q) { return conv2d_amx_direct(which, q); });
  const bool may_be_amx_direct = which != InnerProduct::kBackwardWeight && may_be_by_amx(c);
  const auto by_group_lanes = by_nhwc([=](const auto& q) { return conv2d_group_lanes(which, q); });
  const auto by_output_lanes = by_nhwc([=](const auto& q) { return conv2d_output_lanes(which, q); });
  const auto by_onednn = [&](OnednnWay way) -> Candidates::Make {
    if (!onednn_takes(c)) return nullptr;
    return [=] { return declining([&] { return onednn_conv2d(which, c, way); }); };
  };
  constexpr auto kOwn = Provider::kPlumbline;
  offer_in_order(
      candidates,
      {{"im2col", kOwn, [=] { return conv2d_im2col(which, c); }, has_few_pixels(c) ? Place::kFirst : Place::kLast},
       {"winograd_f4x4", kOwn, by_winograd(4), place_of_winograd(c, 4)},
       {"winograd_f2x2", kOwn, by_winograd(2), place_of_winograd(c, 2)},
       {"direct_chwn", kOwn, [=] { return chwn(copy->problem()); }},
       {"group_lanes", kOwn, by_group_lanes, place_of_group_lanes(which, c)},
       {"output_lanes", kOwn, which == InnerProduct::kBackwardWeight ? Candidates::Make() : by_output_lanes,
        place_of_output_lanes(which, c)},
       {"amx_direct", kOwn, may_be_amx_direct ? by_amx_direct : Candidates::Make(), place_of_amx_direct(which, c)},
       {"implicit_gemm", kOwn, is_of_pixels(c) ? Candidates::Make() : by_implicit_gemm,
        place_of_implicit_gemm(which, c)},
       {"direct", Provider::kOneDnn, by_onednn(kDirect), place_of_direct(c)},
       {"blocked", Provider::kOneDnn, by_onednn(kBlocked)},
       {"winograd_blocked", Provider::kOneDnn, by_onednn(kWinogradBlocked)}});
}

// What windows of one pixel have besides.
void offer_of_pixels(InnerProduct which, const Problem<Params>& p, Candidates& candidates) {
  const Conv c(which, p);
  if (!is_of_pixels(c)) return;
  const bool is_relu = which == InnerProduct::kForward && c.params.activation == Activation::kRelu;
  const auto by_product = [&](auto* make) -> Candidates::Make {
    return [=] {
      auto kernel = declining([&] { return make(which, c); });
      return is_relu ? relu_epilogue(std::move(kernel), c.y) : std::move(kernel);
    };
  };
  const auto packed = [=, threads = p.threads] {
    Product product = product_of_pixels(which, c);
    product.threads = threads;
    return packed_gemm_kernel(product, is_relu);
  };
  const Place place = is_first_by_amx(which, c) ? Place::kFirst : Place::kListed;
  offer_in_order(candidates, {{"inner_product", Provider::kOneDnn, by_product(inner_product_of_pixels)},
                              {"gemm", Provider::kOneDnn, by_product(gemm_of_pixels)},
                              {"packed_gemm", Provider::kPlumbline, packed, place}});
}

template <class Winograd, class Chwn>
void offer_all(InnerProduct which, const Problem<Params>& p, Candidates& candidates, Winograd winograd, Chwn chwn) {
  const int weights = which == InnerProduct::kBackwardWeight ? -1 : 1;
  offer_also_via_f32(p, candidates, weights, [&](const Problem<Params>& q, Candidates& to) {
    const bool pixels_first = is_first_by_amx(which, Conv(which, q));
    if (pixels_first) offer_of_pixels(which, q, to);
    offer(which, q, to, winograd, chwn);
    if (!pixels_first) offer_of_pixels(which, q, to);
  });
}

}  // namespace
}  // namespace plumb::cpu

namespace plumb {

void Conv2dForward::cpu(const Problem<Params>& p, Candidates& candidates) {
  cpu::offer_all(cpu::InnerProduct::kForward, p, candidates, cpu::winograd_forward, cpu::conv2d_chwn_forward);
}

void Conv2dBackwardInput::cpu(const Problem<Params>& p, Candidates& candidates) {
  cpu::offer_all(cpu::InnerProduct::kBackwardInput, p, candidates, cpu::winograd_backward_input,
                 cpu::conv2d_chwn_backward_input);
}

void Conv2dBackwardWeight::cpu(const Problem<Params>& p, Candidates& candidates) {
  cpu::offer_all(cpu::InnerProduct::kBackwardWeight, p, candidates, cpu::winograd_backward_weight,
                 cpu::conv2d_chwn_backward_weight);
}

}  // namespace plumb
