// Cases for conv2d: channels of every remainder, windows, strides, dilations, groups and paddings.
#include "ops/conv2d.h"
#include "tests/cases/op_case.h"

namespace plumb::test {
namespace {

struct Layer {
  std::string name;
  int64_t n, ic, ih, iw, oc, kh, kw;
  Conv2dParams p{};
  bool bias = false;
};

std::vector<Layer> layers() {
  return {
      {"first_3x3", 2, 3, 16, 15, 16, 3, 3, {.padding = 1}},
      {"first_7x7_stride2", 1, 3, 23, 23, 16, 7, 7, {.stride = 2, .padding = 3}},
      {"same_3x3", 2, 16, 12, 10, 32, 3, 3, {.padding = 1}},
      {"same_3x3_n33", 33, 16, 5, 6, 16, 3, 3, {.padding = 1}},
      {"same_3x3_c10", 3, 10, 5, 9, 17, 3, 3, {.padding = 1}},
      {"valid_3x3_c17", 2, 17, 8, 8, 17, 3, 3},
      {"pointwise_c17", 2, 17, 9, 5, 10, 1, 1},
      {"pointwise_stride2", 2, 16, 9, 8, 32, 1, 1, {.stride = 2}},
      {"stride2_3x3", 2, 16, 9, 8, 16, 3, 3, {.stride = 2, .padding = 1}},
      {"stride2_3x3_rows_left_over", 1, 3, 8, 8, 4, 3, 3, {.stride = 2}},
      {"stride3_2x2_gaps", 2, 4, 8, 9, 5, 2, 2, {.stride = 3}},
      {"same_5x5", 2, 10, 9, 8, 16, 5, 5, {.padding = 2}},
      {"dilation2_3x3", 2, 16, 9, 8, 16, 3, 3, {.dilation = 2, .padding = 2}},
      {"groups2_3x3", 2, 32, 7, 6, 32, 3, 3, {.padding = 1, .groups = 2}},
      {"depthwise_c17_stride2", 2, 17, 9, 8, 17, 3, 3, {.stride = 2, .padding = 1, .groups = 17}},
      {"depthwise_c32", 2, 32, 9, 8, 32, 3, 3, {.padding = 1, .groups = 32}},
      {"depthwise_multiplier2", 2, 3, 9, 8, 6, 3, 3, {.padding = 1, .groups = 3}},
      {"asymmetric", 2, 10, 9, 11, 16, 3, 2, {.stride = {2, 1}, .dilation = {1, 2}, .padding = {0, 2, 1, 3}}},
      {"one_pixel", 2, 17, 1, 1, 16, 3, 3, {.padding = 1}},
      {"narrower_than_a_stride", 2, 16, 4, 1, 16, 3, 3, {.stride = 2, .padding = {1, 1, 2, 2}}},
      {"one_window_stride_beyond", 2, 16, 5, 6, 16, 3, 3, {.stride = 2147483647}},
      {"one_row_1025", 1, 1, 1, 1025, 1, 1, 3},
      {"bias", 2, 16, 6, 7, 17, 3, 3, {.padding = 1}, true},
      {"bias_relu", 2, 16, 9, 8, 16, 3, 3, {.padding = 1, .activation = Activation::kRelu}, true},
      {"relu", 1, 3, 6, 6, 10, 3, 3, {.padding = 1, .activation = Activation::kRelu}},
      {"no_images", 0, 16, 8, 8, 16, 3, 3, {.padding = 1}, true},
  };
}

OpVariant variant_of(const Layer& l) {
  OpVariant v{.name = l.name, .terms = static_cast<double>(l.ic / l.p.groups * l.kh * l.kw)};
  v.inputs.push_back({.spec = Shape{l.n, l.ic, l.ih, l.iw}});
  v.inputs.push_back({.spec = Shape{l.oc, l.ic / l.p.groups, l.kh, l.kw}, .activation = false});
  if (l.bias) v.inputs.push_back({.spec = Shape{l.oc}, .activation = false});
  v.run = [p = l.p](std::span<const Tensor> in) { return conv2d(in[0], in[1], in.size() == 3 ? in[2] : Tensor(), p); };
  return v;
}

const RegisterCase conv2d_case([] {
  OpCase c{.name = "conv2d", .exact = true};
  for (const Layer& l : layers()) c.variants.push_back(variant_of(l));
  return c;
}());

}  // namespace
}  // namespace plumb::test
