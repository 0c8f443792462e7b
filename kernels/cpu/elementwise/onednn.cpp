#include "kernels/cpu/elementwise/onednn.h"

#include <cmath>

#include "core/hash.h"
#include "kernels/cpu/onednn/primitives.h"
#include "kernels/cpu/parallel.h"

namespace plumb::cpu {
namespace {

using detail::Stage;
using Algorithm = dnnl::algorithm;

// A value of alpha or beta: a number, or an attribute of the functor.
struct Attribute {
  double number = 0;
  int member = -1;
  float of(const void* functor) const {
    return static_cast<float>(member < 0 ? number : static_cast<double>(static_cast<const Real*>(functor)[member]));
  }
};
// oneDNN keeps its primitives by these numbers and takes 0 and -0 for one, so that which of them computes is up to what
// ran before: only -0 as what is added is asked of it, with which x s keeps the sign of 0.
bool is_asked_of_onednn(const Attribute& a, float value, bool is_added) {
  return a.member < 0 || value != 0 || (is_added && std::signbit(value));
}
constexpr Attribute kFirst{0, 0}, kSecond{0, 1}, kMinusOne{-1};
constexpr Stage kForward = Stage::kForward, kBackward = Stage::kBackward, kBackwardB = Stage::kBackwardB;

// When oneDNN is faster on large tensors (docs/measured.md): our own loops round to bf16 in more steps.
enum class Faster : uint8_t { kNever, kInBf16 };

struct Eltwise {
  std::string_view functor;
  Stage stage;
  Algorithm algorithm;
  Faster faster;
  Attribute alpha = {}, beta = {};
};

// Functors that are not listed differ from ours in oneDNN 2.6: ReLU, exp, and the gradients of ReLU and abs at NaN;
// pow, and the gradients of silu, softplus, gelu_tanh and square, at infinity or large numbers; gelu, softplus, silu
// and log near small results. Its sigmoid is 0 below -86.98, where it is 1.7e-38 at most.
constexpr Eltwise kEltwise[] = {
    {"leaky_relu", kForward, Algorithm::eltwise_relu, Faster::kInBf16, kFirst},
    {"sigmoid", kForward, Algorithm::eltwise_logistic, Faster::kNever},
    {"sigmoid", kBackward, Algorithm::eltwise_logistic_use_dst_for_bwd, Faster::kNever},
    {"tanh", kForward, Algorithm::eltwise_tanh, Faster::kInBf16},
    {"tanh", kBackward, Algorithm::eltwise_tanh_use_dst_for_bwd, Faster::kNever},
    {"exp", kBackward, Algorithm::eltwise_exp_use_dst_for_bwd, Faster::kNever},
    {"log", kBackward, Algorithm::eltwise_log, Faster::kNever},
    {"sqrt", kForward, Algorithm::eltwise_sqrt, Faster::kNever},
    {"sqrt", kBackward, Algorithm::eltwise_sqrt_use_dst_for_bwd, Faster::kNever},
    {"square", kForward, Algorithm::eltwise_square, Faster::kInBf16},
    {"abs", kForward, Algorithm::eltwise_abs, Faster::kInBf16},
    {"divide_into", kForward, Algorithm::eltwise_pow, Faster::kNever, kFirst, kMinusOne},
    {"affine", kForward, Algorithm::eltwise_linear, Faster::kInBf16, kFirst, kSecond},
    {"affine", kBackward, Algorithm::eltwise_linear, Faster::kNever, kFirst, kSecond},
};

struct Binary {
  std::string_view functor;
  Stage stage;
  Algorithm algorithm;
  size_t a, b;  // its operands among the inputs
};

// Not listed: its maximum and minimum ignore a NaN in the first operand.
constexpr Binary kBinary[] = {
    {"add", kForward, Algorithm::binary_add, 0, 1},   {"sub", kForward, Algorithm::binary_sub, 0, 1},
    {"mul", kForward, Algorithm::binary_mul, 0, 1},   {"mul", kBackward, Algorithm::binary_mul, 0, 2},
    {"mul", kBackwardB, Algorithm::binary_mul, 0, 1}, {"div", kForward, Algorithm::binary_div, 0, 1},
    {"div", kBackward, Algorithm::binary_div, 0, 2},
};

bool computes_in(const TensorSpec& y) { return (y.dtype == DType::kF32 || y.dtype == DType::kBf16) && y.numel() > 0; }

Place place_of(Faster faster, const TensorSpec& y) {
  const bool is_large = static_cast<int64_t>(y.bytes()) > kGrainBytes;  // else the call itself takes longest
  const bool is_faster = faster == Faster::kInBf16 && y.dtype == DType::kBf16;
  return is_large && is_faster ? Place::kFirst : Place::kListed;
}

std::unique_ptr<Kernel> eltwise(const Eltwise& e, Keeps keeps, const TensorSpec& y, float alpha, float beta) {
  if (e.algorithm == Algorithm::eltwise_relu && alpha == 0) return nullptr;  // it would turn NaN into 0
  const MemoryDesc data({y.numel()}, dnnl_dtype(y.dtype), memory::format_tag::a);
  if (e.stage == kForward) {
    return single_primitive<dnnl::eltwise_forward>(
        eltwise_desc(e.algorithm, data, alpha, beta),
        {{DNNL_ARG_SRC, data, DnnlArg::kIn, 0}, {DNNL_ARG_DST, data, DnnlArg::kOut, 0}});
  }
  return single_primitive<dnnl::eltwise_backward>(
      eltwise_backward_desc(e.algorithm, data, alpha, beta),
      {{DNNL_ARG_DIFF_DST, data, DnnlArg::kIn, 0},
       {keeps == Keeps::kOutput ? DNNL_ARG_DST : DNNL_ARG_SRC, data, DnnlArg::kIn, 1},
       {DNNL_ARG_DIFF_SRC, data, DnnlArg::kOut, 0}});
}

std::unique_ptr<Kernel> binary(const Binary& e, const StridedLoop<3>& loop, DType dtype) {
  const MemoryDesc a = dnnl_desc(loop, 0, dtype), b = dnnl_desc(loop, 1, dtype), y = dnnl_desc(loop, 2, dtype);
  return single_primitive<dnnl::binary>(primitive_desc<dnnl::binary>(dnnl_attr(), e.algorithm, a, b, y),
                                        {{DNNL_ARG_SRC_0, a, DnnlArg::kIn, e.a},
                                         {DNNL_ARG_SRC_1, b, DnnlArg::kIn, e.b},
                                         {DNNL_ARG_DST, y, DnnlArg::kOut, 0}});
}

}  // namespace

Offer dnnl_unary(std::string_view functor, Keeps keeps, Stage stage, const Problem<NoParams>& p, const void* f) {
  const auto e = std::ranges::find_if(
      kEltwise, [&](const Eltwise& each) { return each.functor == functor && each.stage == stage; });
  if (e == std::end(kEltwise) || !computes_in(p.out[0])) return {};
  const float alpha = e->alpha.of(f), beta = e->beta.of(f);
  if (!is_asked_of_onednn(e->alpha, alpha, false) || !is_asked_of_onednn(e->beta, beta, true)) return {};
  return dnnl_offer([=, y = p.out[0]] { return eltwise(*e, keeps, y, alpha, beta); }, place_of(e->faster, p.out[0]));
}

Offer dnnl_binary(std::string_view functor, Stage stage, const Problem<NoParams>& p) {
  const auto e =
      std::ranges::find_if(kBinary, [&](const Binary& each) { return each.functor == functor && each.stage == stage; });
  if (e == std::end(kBinary) || !computes_in(p.out[0])) return {};
  const TensorSpec& y = p.out[0];
  const auto loop = strided_loop<3>(
      y, {broadcast_strides(p.in[e->a], y.shape), broadcast_strides(p.in[e->b], y.shape), strides_of(y)});
  constexpr int64_t kLongRow = 64;  // oneDNN is slow on shorter rows, such as a few channels
  return dnnl_offer([=, dtype = y.dtype] { return binary(*e, loop, dtype); },
                    place_of(loop.extent[0] < kLongRow ? Faster::kNever : Faster::kInBf16, y));
}

}  // namespace plumb::cpu
