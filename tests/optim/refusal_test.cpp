// The sentences with which optimizers refuse gradients, parameters and options.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/optim/optimizers.h"
#include "tests/support/compare.h"

namespace plumb::optim {
namespace {

using test::random_tensor;
using test::refused;

TEST(RefusalTest, GradientsThatDoNotFit) {
  const auto w = parameters_of(kTwo, 1);
  Sgd sgd(w, {});
  const auto g = made(kTwo, 5);

  EXPECT_TRUE(refused([&] { sgd.step({}); }, "sgd: there are 0 gradients for 2 parameters"));
  const auto with = [&sgd](const Tensor& a, const Tensor& b) { return [&sgd, a, b] { sgd.step(std::vector{a, b}); }; };
  EXPECT_TRUE(refused(with(g[0], Tensor()), "sgd: the gradient of parameter 1 is an empty tensor"));
  EXPECT_TRUE(
      refused(with(g[1], g[0]), "sgd: the gradient of parameter 0 is f32 (5) nchw, the parameter is f32 (3, 4) nchw"));
  EXPECT_TRUE(refused([&] { sgd.step(made(kTwo, 5, DType::kF64)); }, "the gradient of parameter 0 is f64"));
  EXPECT_EQ(sgd.steps(), 0);
}

TEST(RefusalTest, CopiesThatDoNotFit) {
  const auto w = parameters_of(kTwo, 1);
  Sgd sgd(w, {});
  const auto g = made(kTwo, 5), g16 = made(kTwo, 5, DType::kBf16), copies = made(kTwo, 9, DType::kBf16);
  const auto with = [&sgd](std::vector<Tensor> gradients, std::vector<Tensor> of_weights) {
    return [&sgd, gradients, of_weights] { sgd.step(gradients, of_weights); };
  };

  EXPECT_TRUE(refused(with(g, {copies[0]}), "sgd: there are 1 copies for 2 parameters"));
  EXPECT_TRUE(
      refused(with(g, copies), "sgd: the gradient of parameter 0 is f32 (3, 4) nchw, its copy is bf16 (3, 4) nchw"));
  EXPECT_TRUE(refused(with(g16, {copies[0], Tensor()}), "the gradient of parameter 1 is bf16 (5) nchw, the parameter"));
  EXPECT_TRUE(refused(with({g[0], g16[1]}, {g[0], copies[1]}), "sgd: the copy of parameter 0 is f32 (3, 4) nchw"));
  EXPECT_TRUE(refused(with(g16, {copies[1], copies[1]}), "copies are of f32 parameters, in bf16"));
  const auto narrow = parameters_of(kTwo, 1, DType::kBf16);
  Sgd masters(narrow, {});
  EXPECT_TRUE(refused([&] { masters.step(g16, copies); }, "the copy of parameter 0 is bf16"));
  EXPECT_EQ(sgd.steps(), 0);
}

TEST(RefusalTest, ParametersItCannotUpdate) {
  const auto w = parameters_of(kTwo, 1);
  const Tensor constant = random_tensor(TensorSpec({2}), 3);
  const auto with = [&](Tensor last) { return [&w, last] { Adam(std::vector{w[0], last}, {}); }; };

  EXPECT_TRUE(refused([] { Adam({}, {}); }, "adam: there are no parameters"));
  EXPECT_TRUE(refused(with(Tensor()), "adam: parameter 1 is an empty tensor"));
  EXPECT_TRUE(refused(with(constant), "adam: parameter 1 f32 (2) nchw needs no gradient"));
  EXPECT_TRUE(refused(with(w[0]), "is parameter 0 again"));
  EXPECT_TRUE(refused(with(random_tensor(TensorSpec({2}, DType::kF64), 3).require_grad()), "use an optimizer each"));
  EXPECT_TRUE(
      refused(with(random_tensor(TensorSpec({2}, DType::kF16), 3).require_grad()), "parameters are f32, f64 or bf16"));
}

TEST(RefusalTest, OptionsOutOfRange) {
  const auto w = parameters_of(kTwo, 1);
  Sgd sgd(w, {});

  EXPECT_TRUE(refused([&] { sgd.set_learning_rate(-1); }, "sgd: the learning rate is -1"));
  EXPECT_TRUE(refused([&] { sgd.set_learning_rate(1e39); }, "sgd: the learning rate is 1e+39; use a finite number"));
  EXPECT_TRUE(refused([&] { sgd.set_learning_rate(INFINITY); }, "sgd: the learning rate is inf"));
  EXPECT_TRUE(refused([&] { Sgd(w, {.momentum = -0.5}); }, "sgd: momentum is -0.5"));
  EXPECT_TRUE(refused([&] { Sgd(w, {.momentum = 1.5, .convention = Convention::kKeras}); },
                      "sgd: momentum is 1.5; in keras it is at most 1"));
  EXPECT_TRUE(refused([&] { Sgd(w, {.nesterov = true}); }, "it needs a momentum above 0"));
  EXPECT_TRUE(refused([&] { Sgd(w, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}); }, "and no dampening"));
  EXPECT_TRUE(refused([&] { Adam(w, {.beta1 = 1}); }, "adam: beta1 is 1"));
  EXPECT_TRUE(refused([&] { Adam(w, {.beta2 = NAN}); }, "adam: beta2 is nan"));
  EXPECT_TRUE(refused([&] { AdamW(w, {.weight_decay = -1}); }, "adamw: weight_decay is -1"));
  EXPECT_TRUE(refused([&] { RmsProp(w, {.rho = 1.5}); }, "rmsprop: rho is 1.5"));
  EXPECT_TRUE(refused([&] { RmsProp(w, {.epsilon = -1e-8}); }, "rmsprop: epsilon is -"));
}

TEST(RefusalTest, WhatTheConventionDoesNotHave) {
  const auto w = parameters_of(kTwo, 1);
  constexpr Convention kTf1 = Convention::kTensorFlow1;

  EXPECT_TRUE(refused([&] { Sgd(w, {.weight_decay = 0.1, .convention = kTf1}); }, "tensorflow1 has none"));
  EXPECT_TRUE(refused([&] { Adam(w, {.weight_decay = 0.1, .convention = kTf1}); }, "tensorflow1 has none"));
  EXPECT_TRUE(refused([&] { RmsProp(w, {.weight_decay = 0.1, .convention = kTf1}); }, "tensorflow1 has none"));
  EXPECT_TRUE(
      refused([&] { AdamW(w, {.weight_decay = 0, .convention = kTf1}); }, "adamw: tensorflow1 has no such optimizer"));
  EXPECT_TRUE(refused([&] { AdamW(w, {.convention = kTf1}); }, "adamw: tensorflow1 has no such optimizer"));
  EXPECT_TRUE(refused([] { AdamW::Options::defaults(kTf1); }, "adamw: tensorflow1 has no such optimizer"));
  EXPECT_TRUE(refused([&] { Sgd(w, Sgd::Options::defaults(kTf1)); }, "sgd: the learning rate is not a number"));
  EXPECT_TRUE(refused([&] { RmsProp(w, RmsProp::Options::defaults(kTf1)); }, "the learning rate is not a number"));
  EXPECT_TRUE(refused([&] { Sgd(w, {.momentum = 0.9, .dampening = 0.1, .convention = Convention::kKeras}); },
                      "sgd: dampening is 0.1"));
}

}  // namespace
}  // namespace plumb::optim
