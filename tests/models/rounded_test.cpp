// Parameters that are kept in bf16 between steps: what a step computes is what it computes by rounding them at each
// use.
#include "models/rounded.h"

#include <gtest/gtest.h>

#include "models/layers.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "optim/make.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"
#include "train/training_step.h"

namespace plumb::models {
namespace {

using test::bitwise_equal;

struct Pair {
  explicit Pair(const char* model)
      : network(make_network(model, 7)), optimizer(optim::make(optim::Kind::kAdam, network->trainable(), {})) {}
  std::unique_ptr<Network> network;
  std::unique_ptr<optim::Optimizer> optimizer;
  Generator generator{3};
};

Tensor images_of(const Network& network, int64_t n, uint64_t seed) {
  const Shape& s = network.input();
  return uniform(TensorSpec(Shape{n, s[0], s[1], s[2]}, DType::kBf16, Layout::kNhwc), 0, 1, seed);
}
Tensor labels_of(int64_t n, uint64_t seed) { return uniform(TensorSpec(Shape{n}, DType::kI64), 0, 9, seed); }

// The step without copies: each use of a parameter rounds it, and its gradient comes back in f32.
double step_by_rounding(Pair& p, const Tensor& images, const Tensor& labels) {
  TensorList all = training::forward_backward(*p.network, ForwardContext::training(p.generator), images, labels);
  p.optimizer->step(std::span<const Tensor>(all).subspan(2));
  return all[0].item();
}

void expect_same(const Pair& a, const Pair& b) {
  for (const auto list : {&Network::parameters, &Network::buffers}) {
    const auto &of_a = ((*a.network).*list)(), &of_b = ((*b.network).*list)();
    ASSERT_EQ(of_a.size(), of_b.size());
    for (size_t i = 0; i < of_a.size(); ++i)
      EXPECT_TRUE(bitwise_equal(of_a[i].tensor.detached(), of_b[i].tensor.detached())) << of_a[i].name;
  }
}

// LeNet has layers that round all parameters; of ResNet-20 batch normalisation takes its own in f32 (minutes under
// sanitizers).
#ifdef PLUMB_SANITIZED
constexpr std::initializer_list<const char*> kModels = {"lenet"};
#else
constexpr std::initializer_list<const char*> kModels = {"lenet", "resnet20"};
#endif
TEST(RoundedParametersTest, StepsAreThoseThatRoundAtEachUse) {
  for (const char* const model : kModels) {
    for (const training::StepMode mode : training::kStepModes) {
      Pair rounds(model), keeps(model);
      training::TrainingStep step(*keeps.network, *keeps.optimizer, keeps.generator, mode);
      for (uint64_t i = 0; i < 4; ++i) {
        const int64_t n = i == 2 ? 2 : 3;
        const Tensor images = images_of(*keeps.network, n, i), labels = labels_of(n, i);
        EXPECT_EQ(step(images, labels)[0].item(), step_by_rounding(rounds, images, labels)) << model << ", step " << i;
        if (i == 1) {  // as reading a checkpoint does
          for (const Pair* p : {&rounds, &keeps}) {
            Tensor w = p->network->trainable()[0].detached();
            w.copy_from(uniform(w.spec(), -0.1, 0.1, 5));
          }
        }
      }
      expect_same(keeps, rounds);
    }
  }
}

TEST(RoundedParametersTest, WhatAStepConvertsIsWhatOthersHaveWritten) {
  Pair p("lenet");
  training::TrainingStep step(*p.network, *p.optimizer, p.generator, training::StepMode::kEager);
  const Tensor images = images_of(*p.network, 2, 1), labels = labels_of(2, 1);
  const auto casts_of = [&] {
    int casts = 0;
    const test::AfterEveryKernel watch(
        [&](const PreparedKernel& k, const Launch&) { casts += k.kind->name == std::string_view("cast"); });
    step(images, labels);
    return casts;
  };
  casts_of();
  const int warm = casts_of();
  Tensor w = p.network->trainable()[0].detached();
  w.copy_from(w.clone());
  EXPECT_EQ(casts_of(), warm + 1);
  EXPECT_EQ(casts_of(), warm);
}

TEST(RoundedParametersTest, OnlyWhatALayerRoundsIsUsed) {
  Pair p("resnet20");
  RoundedParameters rounded(*p.network);
  ForwardContext context;
  context.rounded = &rounded;
  const Tensor logits = p.network->forward(images_of(*p.network, 1, 1), context);
  const TensorList gradients = rounded.gradients(sum(to(logits, DType::kF32))), used = rounded.used();
  const auto& named = p.network->parameters();
  for (size_t i = 0; i < named.size(); ++i) {
    const bool is_of_batch_norm = named[i].name.find("bn") != std::string::npos;
    const bool is_used = static_cast<bool>(used[i]);
    EXPECT_EQ(is_used, !is_of_batch_norm) << named[i].name;
    EXPECT_EQ(gradients[i].dtype(), is_used ? DType::kBf16 : DType::kF32) << named[i].name;
  }
  EXPECT_FALSE(rounded.of(Pair("resnet20").network->trainable()[0])) << "a parameter of another network";
}

// Whatever was used so far: before any pass, and after one that went wrong half-way.
TEST(RoundedParametersTest, WhatWasWrittenBeforeItsFirstUseIsRoundedToo) {
  Pair p("lenet");
  RoundedParameters rounded(*p.network);
  ForwardContext keeps, rounds;
  keeps.rounded = &rounded;
  const Tensor images = images_of(*p.network, 1, 1);
  for (int times = 0; times < 2; ++times) {
    for (const Tensor& each : p.network->trainable()) {
      Tensor w = each.detached();
      w.copy_from(uniform(w.spec(), -0.1, 0.1, static_cast<uint64_t>(times)));
    }
    if (times == 1) rounded.of(p.network->trainable()[0]);
    rounded.refresh();
    EXPECT_TRUE(bitwise_equal(p.network->forward(images, keeps).detached(), p.network->forward(images, rounds)));
  }
}

// A layer that a pass uses in both dtypes.
class Twofold final : public Network {
 public:
  Twofold() : Network("twofold", Shape{1, 2, 2}, 3) {
    ParameterMaker maker(1);
    fc_ = Linear(maker, "fc", 4, 3);
    finish(std::move(maker));
  }
  Tensor forward(const Tensor& images, const ForwardContext& context) const override {
    const Tensor x = reshape(images, Shape{images.shape()[0], 4});
    return to(fc_(x, context), DType::kF32) + fc_(to(x, DType::kF32), context);
  }

 private:
  Linear fc_;
};

TEST(RoundedParametersTest, RefusesAParameterThatHasTwoGradients) {
  const Twofold network;
  RoundedParameters rounded(network);
  ForwardContext context;
  context.rounded = &rounded;
  const Tensor images = to(images_of(network, 2, 1), Layout::kNchw), labels = full(Shape{2}, 1, DType::kI64);
  EXPECT_TRUE(test::refused([&] { training::forward_backward(network, context, images, labels); },
                            "twofold: its parameter number 0 is used in bf16 and in f32 in one pass"));
}

}  // namespace
}  // namespace plumb::models
