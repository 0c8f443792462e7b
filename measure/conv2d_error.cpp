#include "measure/conv2d_error.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "kernels/reference/conv2d/conv2d.h"

namespace plumb::measure {
namespace {

// Gives the elements of an operand of any dtype by four logical indices.
struct Operand {
  TensorSpec spec;
  const void* data;
  Strides strides = strides_of(spec);

  double operator()(int64_t a, int64_t b, int64_t c, int64_t d) const {
    const int64_t at = a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3];
    if (spec.dtype == DType::kBf16)
      return static_cast<double>(static_cast<float>(static_cast<const Bfloat16*>(data)[at]));
    if (spec.dtype == DType::kF64) return static_cast<const double*>(data)[at];
    return static_cast<double>(static_cast<const float*>(data)[at]);
  }
};

}  // namespace

double conv2d_error(const PreparedKernel& p, std::span<void* const> in, const void* out) {
  constexpr int64_t kSamples = 256;
  const std::string_view kind = p.kind->name;
  PLUMB_CHECK(kind.starts_with("conv2d_"), "conv2d_error: {} is no convolution", kind);
  Conv2dParams params;
  std::memcpy(static_cast<void*>(&params), p.params.data(), sizeof params);
  const Operand a{p.in()[0], in[0]}, b{p.in()[1], in[1]}, result{p.out()[0], out};
  const Shape& s = result.spec.shape;
  const bool is_forward = kind == "conv2d_forward", is_backward_input = kind == "conv2d_backward_input";
  reference::Conv2dSums exact{b.spec.shape, s, a.spec.shape, params};  // for dw, which sums dy and x
  if (is_forward) exact = {a.spec.shape, b.spec.shape, s, params};
  if (is_backward_input) exact = {s, b.spec.shape, a.spec.shape, params};
  double largest = 0, error = 0;
  for (int64_t sample = 0; sample < std::min(kSamples, s.numel()); ++sample) {
    int64_t rest = sample * int64_t{2654435761} % s.numel();  // visits all channels, and all positions in a tile
    const int64_t l = rest % s[3], k = (rest /= s[3]) % s[2], j = (rest /= s[2]) % s[1], i = rest / s[1];
    double sum = is_forward          ? exact.forward(a, b, i, j, k, l)
                 : is_backward_input ? exact.backward_input(a, b, i, j, k, l)
                                     : exact.backward_weight(a, b, i, j, k, l);
    if (is_forward && p.in().size() == 3) sum += Operand{p.in()[2], in[2]}(j, 0, 0, 0);
    if (is_forward && params.activation == Activation::kRelu) sum = std::max(sum, 0.0);
    largest = std::max(largest, std::abs(sum));
    const double distance = std::abs(result(i, j, k, l) - sum);
    if (!std::isfinite(distance)) return distance;
    error = std::max(error, distance);
  }
  return largest > 0 ? error / largest : error;
}

}  // namespace plumb::measure
