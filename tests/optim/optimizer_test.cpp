// What the optimizers share: their state, the versions of what they write, the tape. Their numbers: golden_test.cpp.
#include "optim/optimizer.h"

#include <gtest/gtest.h>

#include "core/memory.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "ops/reduce.h"
#include "optim/adam.h"
#include "optim/make.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"
#include "tests/optim/optimizers.h"
#include "tests/support/compare.h"

namespace plumb::optim {
namespace {

using test::bitwise_equal;
using test::random_tensor;
using test::refused;

TEST(OptimizerTest, FollowsItsLearningRateTensor) {
  const std::vector<Tensor> w{Tensor::from<double>({1.0, 2.0}, {2}).require_grad()};
  const std::vector<Tensor> g{Tensor::from<double>({1.0, -1.0}, {2})};
  Sgd sgd(w, {.learning_rate = 0.5});

  sgd.step(g);
  EXPECT_EQ(test::to_doubles(w[0]), (std::vector{0.5, 2.5}));

  sgd.set_learning_rate(0.25);
  sgd.step(g);
  EXPECT_EQ(test::to_doubles(w[0]), (std::vector{0.25, 2.75}));

  Tensor rate = sgd.learning_rate();
  rate.mutable_data<double>()[0] = 0;
  sgd.step(g);
  EXPECT_EQ(test::to_doubles(w[0]), (std::vector{0.25, 2.75}));
  EXPECT_EQ(sgd.steps(), 3);
}

TEST(OptimizerTest, NamesItsState) {
  const auto w = parameters_of(kTwo, 1);
  const auto names = [](const Optimizer& o) {
    std::string all;
    for (const auto& [name, tensor] : o.state()) all += name + " ";
    return all;
  };

  EXPECT_EQ(names(Sgd(w, {})), "learning_rate step ");
  EXPECT_EQ(names(Sgd(w, {.momentum = 0.9})), "learning_rate step velocity.0 velocity.1 ");
  EXPECT_EQ(names(Adam(w, {})), "learning_rate step mean.0 mean.1 mean_square.0 mean_square.1 ");
  EXPECT_EQ(names(RmsProp(w, {})), "learning_rate step mean_square.0 mean_square.1 ");
  EXPECT_EQ(names(RmsProp(w, {.momentum = 0.9, .centered = true})),
            "learning_rate step mean_square.0 mean_square.1 mean.0 mean.1 velocity.0 velocity.1 ");
}

TEST(OptimizerTest, SettingsByNameAreItsOptions) {
  const Tensor w = Tensor::from<double>({1.0}, {1}).require_grad();
  const auto sgd = make("sgd", {&w, 1}, {.learning_rate = 0.5, .momentum = 0.5, .weight_decay = 0.25});
  const std::vector<Tensor> none{zeros_like(w)};

  sgd->step(none);
  EXPECT_EQ(w.item(), 0.875);  // 1 - 0.5 * 0.25
  sgd->step(none);
  EXPECT_EQ(w.item(), 0.703125);  // the velocity is 0.5 * 0.25 + 0.25 * 0.875
}

TEST(OptimizerTest, StateIsCountedAsStateAndFitsItsParameter) {
  const Shape shapes[] = {{6, 2, 3, 3}, {7}};
  auto w = made(shapes, 1, DType::kF64);
  w[0] = test::converted(w[0], DType::kF64, Layout::kNhwc);
  for (Tensor& t : w) t.require_grad();
  const int64_t before = cpu_memory().stats().live_bytes[static_cast<size_t>(MemoryClass::kState)];

  const Adam adam(w, {});

  EXPECT_GE(cpu_memory().stats().live_bytes[static_cast<size_t>(MemoryClass::kState)] - before, 2 * (108 + 7) * 8);
  const auto state = adam.state();
  EXPECT_EQ(state[0].second.dtype(), DType::kF64);
  EXPECT_EQ(state[2].second.spec(), w[0].spec());
  EXPECT_EQ(state[5].second.spec(), w[1].spec());
}

// A checkpoint: what state() names, and the parameters.
TEST(OptimizerTest, GoesOnFromItsStateBitForBit) {
  for (const Make& make : every_optimizer()) {
    const auto w = parameters_of(kTwo, 1), again = parameters_of(kTwo, 1);
    const auto straight = make(w), first = make(again);
    for (uint64_t t = 0; t < 6; ++t) straight->step(made(kTwo, 10 + t));
    for (uint64_t t = 0; t < 3; ++t) first->step(made(kTwo, 10 + t));

    const auto second = make(again);
    const auto from = first->state();
    const auto to = second->state();
    for (size_t i = 0; i < from.size(); ++i) Tensor(to[i].second).copy_from(from[i].second);
    for (uint64_t t = 3; t < 6; ++t) second->step(made(kTwo, 10 + t));

    EXPECT_EQ(second->steps(), 6);
    for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(bitwise_equal(again[i], w[i]));
  }
}

TEST(OptimizerTest, RaisesTheVersionsOfWhatItWritesOnce) {
  const auto w = parameters_of(kTwo, 1), g = made(kTwo, 5);
  Adam adam(w, {});
  const auto state = adam.state();
  std::vector<uint32_t> before;
  for (const auto& [name, t] : state) before.push_back(t.value->version());
  const uint32_t weight = w[1].value->version(), gradient = g[1].value->version();

  adam.step(g);

  EXPECT_EQ(state[0].second.value->version(), before[0]);  // the learning rate is only read
  for (size_t i = 1; i < state.size(); ++i) EXPECT_EQ(state[i].second.value->version(), before[i] + 1);
  EXPECT_EQ(w[1].value->version(), weight + 1);
  EXPECT_EQ(g[1].value->version(), gradient);
}

TEST(OptimizerTest, AGraphFromBeforeTheStepIsRefused) {
  Tensor w = random_tensor(TensorSpec({4}, DType::kF64), 1).require_grad();
  Sgd sgd({&w, 1}, {.learning_rate = 0.1});
  const Tensor stale = sum(square(w)), loss = sum(square(w));

  sgd.step(grad(loss, {w}));

  EXPECT_TRUE(refused([&] { grad(stale, {w}); }, "was written to in between"));
  EXPECT_NO_THROW(grad(sum(square(w)), {w}));
}

TEST(OptimizerTest, MinimisesWithoutLeavingATape) {
  for (const Make& make : every_optimizer()) {
    Tensor w = Tensor::from<double>({1.0, -2.0, 0.5}, {3}).require_grad();
    const auto optimizer = make({&w, 1});
    const detail::Ref<detail::Node> leaf = w.node;
    const double before = sum(square(w)).item();
    for (int i = 0; i < 50; ++i) optimizer->step(grad(sum(square(w)), {w}));

    EXPECT_LT(sum(square(w)).item(), before);
    EXPECT_EQ(w.node.get(), leaf.get());
    EXPECT_FALSE(optimizer->learning_rate().requires_grad());
  }
}

TEST(OptimizerTest, HasTheFrameworksDefaultsUnlessTold) {
  Tensor w = ones({2}).require_grad();
  const std::vector<Tensor> parameters{w};
  EXPECT_EQ(Adam(parameters).learning_rate().item(), static_cast<double>(1e-3f));
  EXPECT_EQ(Adam({w}, {.learning_rate = 0.5}).learning_rate().item(), 0.5);
  EXPECT_EQ(Sgd(parameters).parameters().size(), 1u);
  EXPECT_EQ(RmsProp({w}).learning_rate().item(), static_cast<double>(1e-2f));
  AdamW adamw({w});
  adamw.step(grad(sum(w * w), {w}));
  EXPECT_EQ(adamw.steps(), 1);
}

}  // namespace
}  // namespace plumb::optim
