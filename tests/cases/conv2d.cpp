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
      {"stride1x3", 2, 5, 7, 11, 6, 3, 3, {.stride = {1, 3}, .padding = 1}},
      {"same_5x5", 2, 10, 9, 8, 16, 5, 5, {.padding = 2}},
      {"dilation2_3x3", 2, 16, 9, 8, 16, 3, 3, {.dilation = 2, .padding = 2}},
      {"dilation2_3x3_w31", 2, 17, 9, 31, 17, 3, 3, {.dilation = 2, .padding = 2}},
      {"groups2_3x3", 2, 32, 7, 6, 32, 3, 3, {.padding = 1, .groups = 2}},
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

// As many groups as channels: several output channels of each, pieces of channels and of images, and more columns of
// places than a launch has threads.
std::vector<Layer> depthwise_layers() {
  return {
      {"c1", 3, 1, 7, 33, 1, 3, 3, {.padding = 1}},
      {"c3_5x5", 2, 3, 9, 8, 3, 5, 5, {.padding = 2, .groups = 3}},
      {"c8", 33, 8, 5, 4, 8, 3, 3, {.padding = 1, .groups = 8}},
      {"c16_n8", 8, 16, 9, 5, 16, 3, 3, {.padding = 1, .groups = 16, .activation = Activation::kRelu}, true},
      {"c17_stride2", 2, 17, 9, 8, 17, 3, 3, {.stride = 2, .padding = 1, .groups = 17}},
      {"c31", 1, 31, 5, 31, 31, 3, 3, {.padding = 1, .groups = 31}},
      {"c31_dilation2", 1, 31, 9, 31, 31, 3, 3, {.dilation = 2, .padding = 2, .groups = 31}},
      {"c32", 2, 32, 9, 8, 32, 3, 3, {.padding = 1, .groups = 32}},
      {"c33_one_row", 1, 33, 1, 33, 33, 1, 3, {.padding = {0, 0, 1, 1}, .groups = 33}, true},
      {"c64_5x5", 1, 64, 9, 5, 64, 5, 5, {.padding = 2, .groups = 64}, true},
      // clang-format off
      {"c64_stride2_uneven", 2, 64, 6, 9, 64, 3, 4,
       {.stride = {2, 3}, .dilation = {1, 2}, .padding = {0, 1, 3, 2}, .groups = 64}, true},
      // clang-format on
      {"c8_7x8", 8, 8, 5, 6, 8, 7, 8, {.padding = {3, 3, 4, 3}, .groups = 8}},
      {"c132", 1, 132, 5, 17, 132, 3, 3, {.padding = 1, .groups = 132}},
      {"c132_one_pixel", 1, 132, 1, 1, 132, 3, 3, {.padding = 1, .groups = 132}},
      {"c2_1025", 16, 2, 16, 33, 2, 3, 3, {.padding = 1, .groups = 2}},
      {"c4_1025_stride2", 4, 4, 31, 65, 4, 3, 3, {.stride = 2, .padding = 1, .groups = 4}},
      {"multiplier2", 2, 3, 9, 8, 6, 3, 3, {.padding = 1, .groups = 3}},
      {"multiplier2_c8_stride2", 8, 8, 9, 7, 16, 3, 3, {.stride = 2, .padding = 1, .groups = 8}, true},
      {"multiplier32_of_one", 2, 1, 9, 7, 32, 3, 3, {.padding = 1}, true},
      {"c16_stride_beyond", 2, 16, 5, 6, 16, 3, 3, {.stride = 2147483647, .groups = 16}},
      {"c16_no_images", 0, 16, 8, 8, 16, 3, 3, {.padding = 1, .groups = 16}, true},
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

OpCase case_of(const char* name, const std::vector<Layer>& layers) {
  OpCase c{.name = name, .exact = true};
  for (const Layer& l : layers) c.variants.push_back(variant_of(l));
  return c;
}

const RegisterCase conv2d_case(case_of("conv2d", layers()));
const RegisterCase depthwise_case(case_of("conv2d_depthwise", depthwise_layers()));

}  // namespace
}  // namespace plumb::test
