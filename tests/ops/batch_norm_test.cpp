#include "ops/batch_norm.h"

#include <cmath>

#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "tests/support/compare.h"
#include "tests/support/gradcheck.h"
#include "tests/support/kernel_check.h"

namespace plumb::test {
namespace {

BatchNormParams params(bool train) { return batch_norm_defaults(Convention::kPyTorch, train); }

/// All inputs of the op, with random parameters and statistics.
struct Inputs {
  Tensor x, gamma, beta, mean, var;
  explicit Inputs(const TensorSpec& s, double low = -1, double high = 1) {
    const TensorSpec c({s.shape[1]}, s.dtype == DType::kF64 ? DType::kF64 : DType::kF32);
    x = random_tensor(s, 1, low, high);
    gamma = random_tensor(c, 2, 0.5, 1.5);
    beta = random_tensor(c, 3);
    mean = random_tensor(c, 4);
    var = random_tensor(c, 5, 0.5, 2);
  }
  Tensor run(const BatchNormParams& p, const Tensor& addend = {}) const {
    return batch_norm(x, gamma, beta, mean, var, p, addend);
  }
};

/// By the definition, in double and in logical order.
struct Expected {
  std::vector<double> y, mean, var, running_mean, running_var;
  Expected(const Inputs& in, const BatchNormParams& p) : y(to_doubles(in.x)) {
    const auto channels = static_cast<size_t>(in.x.shape()[1]),
               inner = static_cast<size_t>(in.x.rank() == 4 ? in.x.shape()[2] * in.x.shape()[3] : 1);
    const std::vector<double> gamma = to_doubles(in.gamma), beta = to_doubles(in.beta);
    running_mean = to_doubles(in.mean);
    running_var = to_doubles(in.var);
    const auto channel_of = [&](size_t i) { return i / inner % channels; };
    const double n = static_cast<double>(y.size()) / static_cast<double>(channels);
    mean = running_mean;
    var = running_var;
    if (p.train) {
      mean.assign(channels, 0);
      var.assign(channels, 0);
      for (size_t i = 0; i < y.size(); ++i) mean[channel_of(i)] += y[i] / n;
      for (size_t i = 0; i < y.size(); ++i)
        var[channel_of(i)] += (y[i] - mean[channel_of(i)]) * (y[i] - mean[channel_of(i)]) / n;
      for (size_t c = 0; c < channels; ++c) {
        running_mean[c] += p.momentum * (mean[c] - running_mean[c]);
        running_var[c] += p.momentum * ((p.unbiased_running_variance ? var[c] * n / (n - 1) : var[c]) - running_var[c]);
      }
    }
    for (size_t i = 0; i < y.size(); ++i) {
      const size_t c = channel_of(i);
      y[i] = (y[i] - mean[c]) / std::sqrt(var[c] + p.epsilon) * gamma[c] + beta[c];
    }
  }
};

/// Columns, folded and tiled; short and long runs; runs that are cut.
const std::vector<Shape> kShapes = {{3, 1},         {17, 3},       {33, 10},      {130, 300},    {1025, 17},
                                    {3, 17, 1, 1},  {2, 3, 5, 7},  {33, 3, 2, 2}, {5, 33, 8, 9}, {2, 65, 16, 4},
                                    {2, 3, 70, 70}, {70, 5, 3, 3}, {1, 1, 33, 1}, {5, 32, 7, 9}};

TEST(BatchNorm, MatchesItsDefinition) {
  for (const Convention convention : {Convention::kPyTorch, Convention::kKeras, Convention::kTensorFlow1}) {
    for (const bool train : {false, true}) {
      const BatchNormParams p = batch_norm_defaults(convention, train);
      for_each_spec(kShapes, {DType::kF64, DType::kF32, DType::kBf16}, [&](const TensorSpec& s) {
        const Inputs in(s);
        const Expected expected(in, p);
        const double roundoff = unit_roundoff(in.gamma.dtype());

        const Tensor y = in.run(p);

        EXPECT_EQ(y.spec(), s);
        EXPECT_TRUE(close(to_doubles(y), expected.y, 4 * unit_roundoff(s.dtype) + 64 * roundoff));
        EXPECT_TRUE(close(to_doubles(in.mean), expected.running_mean, 8 * roundoff));
        EXPECT_TRUE(close(to_doubles(in.var), expected.running_var, 8 * roundoff));
      });
    }
  }
}

TEST(BatchNorm, KernelsMatchF64AndStayInTheirMemory) {
  KernelCheck check(16);
  for (const bool train : {false, true}) {
    for_each_spec(kShapes, {DType::kF32, DType::kBf16}, [&](const TensorSpec& s) {
      Inputs in(s, 0, 2);  // a mean of nearly zero would have no correct digits
      in.gamma.require_grad();
      const Tensor y = in.run(params(train));
      grad(y, {in.gamma}, random_tensor(s, 7));
      in.x.require_grad();
      const Tensor z = in.run(params(train));
      grad(z, {in.x}, random_tensor(s, 7));
    });
  }
  EXPECT_EQ(check.checked(), (std::set<std::string>{"batch_norm_backward:loop", "batch_norm_backward:onednn",
                                                    "batch_norm_backward:reference", "batch_norm_forward:loop",
                                                    "batch_norm_forward:onednn", "batch_norm_forward:reference"}));
}

TEST(BatchNorm, KernelsAddAndApplyTheActivation) {
  KernelCheck check(16);
  for (const bool train : {false, true}) {
    for_each_spec(kShapes, {DType::kF32, DType::kBf16}, [&](const TensorSpec& s) {
      Inputs in(s, 0, 2);
      BatchNormParams p = params(train);
      in.run(p, random_tensor(s, 8));
      p.activation = Activation::kRelu;
      in.run(p, random_tensor(s, 8));
      in.gamma.require_grad();
      grad(in.run(p), {in.gamma}, random_tensor(s, 7));
      in.x.require_grad();
      grad(in.run(p), {in.x}, random_tensor(s, 7));
    });
  }
  EXPECT_EQ(check.checked(), (std::set<std::string>{"batch_norm_backward:loop", "batch_norm_backward:onednn",
                                                    "batch_norm_backward:reference", "batch_norm_forward:loop",
                                                    "batch_norm_forward:onednn", "batch_norm_forward:reference"}));
}

// An op less does not change a bit where nothing is rounded between.
TEST(BatchNorm, AddsAndAppliesTheActivationAsOpsOfTheirOwnDo) {
  const auto check = [](const TensorSpec& s, bool train, bool adds) {
    Inputs in(s), apart(s);
    for (Inputs* i : {&in, &apart}) {
      for (Tensor* t : {&i->x, &i->gamma, &i->beta}) t->require_grad();
    }
    Tensor addend = random_tensor(s, 8), addend_apart = random_tensor(s, 8);
    addend.require_grad();
    addend_apart.require_grad();
    const Tensor dy = random_tensor(s, 7);
    BatchNormParams p = params(train);
    const Tensor z = apart.run(p), expected = relu(adds ? add(z, addend_apart) : z);
    p.activation = Activation::kRelu;

    const Tensor y = in.run(p, adds ? addend : Tensor());

    EXPECT_TRUE(bitwise_equal(y, expected));
    EXPECT_TRUE(bitwise_equal(in.mean, apart.mean));
    const GradOptions unused{.allow_unused = true};
    const auto of = grad(y, {in.x, in.gamma, in.beta, addend}, dy, unused);
    const auto of_apart = grad(expected, {apart.x, apart.gamma, apart.beta, addend_apart}, dy, unused);
    for (size_t i = 0; i < (adds ? 4 : 3); ++i) EXPECT_TRUE(bitwise_equal(of[i], of_apart[i])) << i;
  };
  for (const bool train : {false, true}) {
    for (const bool adds : {false, true})
      for_each_spec(kShapes, {DType::kF64}, [&](const TensorSpec& s) { check(s, train, adds); });
  }
}

// Large enough to be written past the caches.
TEST(BatchNorm, LargeResultsMatchTheReference) {
  const KernelCheck kernels(16);
  const auto check = [](Layout layout, bool train) {
    Inputs in({{pieces_past_caches(1033 * 9 * 8 * 4), 1033, 9, 8}, DType::kF32, layout}, 0, 2);
    in.x.require_grad();
    const Tensor y = in.run(params(train));
    grad(y, {in.x}, random_tensor(y.spec(), 7));
    BatchNormParams p = params(train);
    p.activation = Activation::kRelu;
    in.run(p, random_tensor(y.spec(), 8));
    grad(in.run(p), {in.x}, random_tensor(y.spec(), 7));
  };
  check(Layout::kNchw, true);
  check(Layout::kNhwc, true);
  check(Layout::kNhwc, false);
}

TEST(BatchNorm, GradientsAndSecondDerivativesMatchDifferences) {
  BatchNormParams in_training = params(true), in_use = params(false), training_relu = in_training, use_relu = in_use;
  training_relu.activation = use_relu.activation = Activation::kRelu;
  for (const BatchNormParams& p : {in_training, in_use, training_relu, use_relu}) {
    for_each_spec(kShapes, {DType::kF64}, [&](const TensorSpec& s) {
      Inputs in(s);
      const Tensor wanted[3] = {in.x.require_grad(), in.gamma.require_grad(), in.beta.require_grad()};
      const auto f = [&](std::span<const Tensor> x) {
        return batch_norm(x[0], x[1], x[2], converted(in.mean, DType::kF64, Layout::kNchw),
                          converted(in.var, DType::kF64, Layout::kNchw), p);
      };

      EXPECT_TRUE(gradcheck(f, wanted, {.samples = 4}));
      EXPECT_TRUE(s.numel() > 2000 || gradgradcheck(f, wanted, {.samples = 3}));
    });
  }
}

TEST(BatchNorm, ARecordedBackwardGivesTheSameGradients) {
  BatchNormParams relu = params(true);
  relu.activation = Activation::kRelu;
  for (const BatchNormParams& p : {params(false), params(true), relu}) {
    for_each_spec(kShapes, {DType::kF32, DType::kBf16}, [&](const TensorSpec& s) {
      Inputs in(s);
      const Tensor wanted[3] = {in.x.require_grad(), in.gamma.require_grad(), in.beta.require_grad()};
      const Tensor dy = random_tensor(s, 9), y = in.run(p);

      const TensorList fused = grad(y, wanted, dy, {.retain_graph = true});
      const TensorList recorded = grad(y, wanted, dy, {.create_graph = true});

      for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(recorded[i].spec(), fused[i].spec());
        EXPECT_TRUE(close(recorded[i], fused[i], 8 * unit_roundoff(fused[i].dtype()) + 1e-5)) << i;
      }
    });
  }
}

TEST(BatchNorm, GradientsOfSomeInputsAreThoseOfAll) {
  Inputs in({{3, 17, 5, 7}, DType::kF32});
  const Tensor dy = random_tensor(in.x.spec(), 9);
  const Tensor gamma = in.gamma.detached().require_grad(), x = in.x.detached().require_grad();
  const auto only = [&](const Tensor& a, const Tensor& b) { return batch_norm(a, b, in.beta, in.mean, in.var); };
  const Tensor both[2] = {x, gamma};

  const TensorList all = grad(only(x, gamma), both, dy);

  EXPECT_TRUE(bitwise_equal(grad(only(x, in.gamma), {x}, dy)[0], all[0]));
  EXPECT_TRUE(bitwise_equal(grad(only(in.x, gamma), {gamma}, dy)[0], all[1]));
}

TEST(BatchNorm, KeepsItsDigitsWhereTheMeanIsLarge) {
  for_each_spec(kShapes, {DType::kF32}, [&](const TensorSpec& s) {
    const Inputs in(s, 1e4 - 1, 1e4 + 1);
    const Expected expected(in, params(true));

    const Tensor y = in.run({.momentum = 1.0, .unbiased_running_variance = 0});

    EXPECT_TRUE(close(to_doubles(in.mean), expected.mean, 2.5e-7));
    EXPECT_TRUE(close(to_doubles(in.var), expected.var, 2e-6));
    EXPECT_TRUE(close(to_doubles(y), expected.y, 4e-6));
  });
}

TEST(BatchNorm, KeepsItsDigitsWhereTheFirstElementsAreFarOff) {
  for_each_spec(kShapes, {DType::kF32}, [&](const TensorSpec& s) {
    Inputs in(s, 99, 101);
    std::vector<double> x = to_doubles(in.x);
    std::fill_n(x.begin(), std::max<size_t>(1, x.size() / 10), 0.0);  // the first images are black
    in.x = from_doubles(x, s);
    const Expected expected(in, params(true));

    const Tensor y = in.run({.momentum = 1.0, .unbiased_running_variance = 0});

    EXPECT_TRUE(close(to_doubles(in.var), expected.var, 4e-6));
    EXPECT_TRUE(close(to_doubles(y), expected.y, 4e-6));
  });
}

// A sum of a few of them would be infinite.
TEST(BatchNorm, TheMeanOfLargeNumbersIsFinite) {
  for (const Shape& s : {Shape{1024, 1}, Shape{128, 1, 7, 7}, Shape{4, 2, 32, 32}}) {
    const Tensor x = full(TensorSpec(s), 1e38), ones_of_channels = ones({s[1]}), zeros_of_channels = zeros({s[1]});
    Tensor mean = zeros({s[1]}), var = ones({s[1]});
    const Tensor y = batch_norm(x, ones_of_channels, zeros_of_channels, mean, var, {.momentum = 1});
    for (const float m : mean.data<float>()) EXPECT_NEAR(m, 1e38f, 1e32f) << to_string(s);
    for (const float v : y.data<float>()) ASSERT_TRUE(std::isfinite(v)) << to_string(s);
  }
}

TEST(BatchNorm, DoesNotDependOnTheNumberOfThreads) {
  for_each_spec(kShapes, {DType::kF32}, [](const TensorSpec& s) {
    expect_same_with_any_threads([&] {
      Inputs in(s);
      const Tensor wanted[3] = {in.x.require_grad(), in.gamma.require_grad(), in.beta.require_grad()};
      const Tensor y = in.run(params(true));
      const TensorList d = grad(y, wanted, random_tensor(s, 9));
      return std::vector<Tensor>{y.detached(), in.mean, in.var, d[0], d[1], d[2]};
    });
  });
}

TEST(BatchNorm, DefaultsAreEachFrameworks) {
  const BatchNormParams torch = batch_norm_defaults(Convention::kPyTorch);
  EXPECT_EQ(torch.epsilon, Real(1e-5));
  EXPECT_EQ(torch.momentum, Real(0.1));
  EXPECT_TRUE(torch.unbiased_running_variance && torch.train);
  const BatchNormParams keras = batch_norm_defaults(Convention::kKeras, false);
  EXPECT_EQ(keras.epsilon, Real(1e-3));
  EXPECT_EQ(keras.momentum, Real(0.01));
  EXPECT_FALSE(keras.unbiased_running_variance || keras.train);
  EXPECT_TRUE(batch_norm_defaults(Convention::kTensorFlow1).unbiased_running_variance);
}

TEST(Convention, NamesGoBothWays) {
  for (const Convention c : {Convention::kPyTorch, Convention::kKeras, Convention::kTensorFlow1}) {
    EXPECT_EQ(convention_from_string(to_string(c)), c);
  }
  EXPECT_TRUE(refused([] { convention_from_string("caffe"); }, "use pytorch, keras or tensorflow1"));
}

}  // namespace
}  // namespace plumb::test
