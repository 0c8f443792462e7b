// Cases for linear.
#include "ops/linear.h"
#include "tests/cases/op_case.h"

namespace plumb::test {
namespace {

void add(OpCase& c, const std::string& name, const Shape& x, int64_t out, bool bias,
         Activation activation = Activation::kNone) {
  OpVariant v{.name = name, .terms = static_cast<double>(x[-1])};
  v.inputs.push_back({.spec = x, .activation = false});
  v.inputs.push_back({.spec = Shape{out, x[-1]}});
  if (bias) v.inputs.push_back({.spec = Shape{out}});
  v.run = [activation](std::span<const Tensor> in) {
    return linear(in[0], in[1], in.size() == 3 ? in[2] : Tensor(), activation);
  };
  c.variants.push_back(std::move(v));
}

// The second layer's backward takes the first one's ReLU along where there is a mask.
void add_two(OpCase& c, const std::string& name, int64_t rows, int64_t width, int64_t out) {
  constexpr int64_t kIn = 33;
  OpVariant v{.name = name, .terms = static_cast<double>(width)};
  for (const Shape& shape : {Shape{rows, kIn}, Shape{width, kIn}, Shape{width}, Shape{out, width}, Shape{out}})
    v.inputs.push_back({.spec = shape});
  v.run = [](std::span<const Tensor> in) {
    return linear(linear(in[0], in[1], in[2], Activation::kRelu), in[3], in[4]);
  };
  c.variants.push_back(std::move(v));
}

const RegisterCase linear_case([] {
  OpCase c{.name = "linear", .exact = true};
  add(c, "plain", {33, 64}, 31, false);
  add(c, "bias", {31, 17}, 10, true);
  add(c, "bias_relu", {16, 33}, 48, true, Activation::kRelu);
  add(c, "relu", {5, 1025}, 3, false, Activation::kRelu);
  add(c, "wide", {9, 259}, 275, false);
  add(c, "one_image", {1, 64}, 10, true);
  add(c, "one_output", {17, 10}, 1, true);
  add(c, "rank3", {2, 5, 10}, 17, true);
  add(c, "rank1", {10}, 3, true);
  add(c, "joint_backward", {2, 1041}, 259, true);
  add(c, "joint_backward_one_row", {1, 1024}, 258, true, Activation::kRelu);
  add_two(c, "two_layers", 17, 129, 5);
  add(c, "no_images", {0, 10}, 3, true);
  add(c, "no_images_relu", {0, 10}, 3, true, Activation::kRelu);
  return c;
}());

}  // namespace
}  // namespace plumb::test
