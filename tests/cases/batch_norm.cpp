// Cases for batch_norm in training and in use, in each framework's convention, with an addend and an activation.
#include "ops/batch_norm.h"
#include "tests/cases/op_case.h"

namespace plumb::test {
namespace {

OpVariant variant_of(const std::string& name, const Shape& x, const BatchNormParams& p, bool adds = false) {
  const Shape channels{x[1]};
  const auto statistic = [&](double low, double high, bool differentiable) {
    return CaseInput{.spec = channels, .low = low, .high = high, .differentiable = differentiable, .wide = true};
  };
  const double values = static_cast<double>(x.numel()) / static_cast<double>(std::max<int64_t>(1, x[1]));
  OpVariant v{.name = name + " " + to_string(x),
              .inputs = {{.spec = x, .low = -2, .high = 3},
                         statistic(0.5, 2, true),
                         statistic(-1, 1, true),
                         statistic(-1, 1, false),
                         statistic(0.5, 2, false)},
              .run =
                  [p](std::span<const Tensor> in) {
                    return batch_norm(in[0], in[1], in[2], in[3], in[4], p, in.size() > 5 ? in[5] : Tensor());
                  },
              .terms = p.train ? values : 1};
  if (adds) v.inputs.push_back({.spec = x, .low = -1, .high = 1});
  return v;
}

// Every way over the elements: any, one channel a piece, long runs, columns of pieces; and half a piece at a time.
const std::vector<Shape> kWays = {{4, 10, 5, 7},  {33, 17},     {2, 3, 31, 33}, {3, 16, 4, 2},
                                  {3, 5, 32, 18}, {3, 5, 2, 6}, {2, 3, 20, 13}};

const RegisterCase training_case([] {
  OpCase c{.name = "batch_norm_train", .tolerance = 32};
  for (const Convention convention : {Convention::kPyTorch, Convention::kKeras, Convention::kTensorFlow1})
    c.variants.push_back(variant_of(to_string(convention), {4, 10, 5, 7}, batch_norm_defaults(convention)));
  for (const Shape& x : {Shape{3, 16, 8, 8}, Shape{2, 17, 3, 5}, Shape{33, 3, 1, 2}, Shape{1, 32, 9, 9}, Shape{33, 17},
                         Shape{1025, 3}, Shape{5, 1, 31, 33}, Shape{16, 64}, Shape{4, 17, 33, 31}, Shape{3, 290, 1, 2},
                         Shape{2, 290}, Shape{200, 48}, Shape{1030, 16}, Shape{3, 5, 32, 18}}) {
    c.variants.push_back(variant_of("plain", x, {}));
  }
  for (const Shape& x : kWays) c.variants.push_back(variant_of("add", x, {}, true));
  return c;
}());

const RegisterCase evaluation_case([] {
  OpCase c{.name = "batch_norm_eval", .tolerance = 32};
  for (const Shape& x :
       {Shape{4, 10, 5, 7}, Shape{2, 17, 3, 5}, Shape{1, 3, 1, 1}, Shape{33, 17}, Shape{1, 1025}, Shape{0, 10, 4, 4},
        Shape{4, 17, 33, 31}, Shape{3, 5, 32, 18}, Shape{200, 48}, Shape{9, 328}}) {
    c.variants.push_back(variant_of("plain", x, {.train = 0}));
  }
  for (const Shape& x : kWays) c.variants.push_back(variant_of("add", x, {.train = 0}, true));
  return c;
}());

const RegisterCase relu_case([] {
  OpCase c{.name = "batch_norm_relu", .tolerance = 32};
  for (const int train : {1, 0}) {
    const std::string mode = train ? "train" : "eval";
    const BatchNormParams p{.train = train, .activation = Activation::kRelu};
    for (const Shape& x : kWays) c.variants.push_back(variant_of(mode, x, p));
    OpVariant& of_parameters = c.variants.emplace_back(variant_of(mode + " parameters", kWays[0], p));
    of_parameters.inputs[0].differentiable = false;
  }
  c.variants.push_back(variant_of("empty", {0, 3, 4, 4}, {.train = 0, .activation = Activation::kRelu}));
  return c;
}());

const RegisterCase added_case([] {
  OpCase c{.name = "batch_norm_add_relu", .tolerance = 32};
  c.dtypes = {DType::kF32};  // in bf16 what is near the kink may lie on either side of it
  for (const int train : {1, 0}) {
    const BatchNormParams p{.train = train, .activation = Activation::kRelu};
    for (const Shape& x : kWays) c.variants.push_back(variant_of(train ? "train" : "eval", x, p, true));
  }
  c.variants.push_back(variant_of("empty", {0, 3, 4, 4}, {.train = 0, .activation = Activation::kRelu}, true));
  return c;
}());

}  // namespace
}  // namespace plumb::test
