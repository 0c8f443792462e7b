// Networks train on the emulated device: eager and captured, and whatever the order of blocks and threads, bit for bit
// the same, and as on the host but for rounding.
#include <gtest/gtest.h>

#include "core/runtime.h"
#include "graph/program.h"
#include "kernels/cuda/emulator/threads.h"
#include "models/network.h"
#include "ops/convert.h"
#include "ops/random.h"
#include "optim/make.h"
#include "tests/support/compare.h"
#include "tests/support/training.h"

namespace plumb {
namespace {

using emulator::Order;

struct Training {
  const char* model;
  const char* optimizer;
  int steps;
  int64_t batch;
  Layout layout = Layout::kNhwc;
};
struct How {
  Device device{DeviceType::kCuda, 0};
  bool captured = false;
  Order order = Order::kForward;
};
struct Outcome {
  std::vector<double> losses;
  std::vector<Tensor> state;  // parameters, statistics and the optimizer's, on the host
};

// With dropout and a changed rate, and a short batch at the end of every three.
Outcome train(const Training& run, const How& how) {
  emulator::set_order(how.order);
  const DeviceScope on(how.device);
  const auto network = models::make_network(run.model, 7);
  optim::Settings settings;
  settings.learning_rate = 1e-3;
  if (std::string_view(run.optimizer) != "adam") settings.momentum = 0.9;
  const auto optimizer = optim::make(run.optimizer, network->trainable(), settings);
  Generator generator(3);
  const auto step = [&](std::span<const Tensor> in) { return test::train_step(*network, *optimizer, generator, in); };
  StaticFunction replayed(step);
  Outcome o;
  const Shape& image = network->input();
  for (int i = 0; i < run.steps; ++i) {
    if (i == run.steps / 2) optimizer->set_learning_rate(2e-4);
    const int64_t n = run.batch - (run.batch > 2 && i % 3 == 2);
    const auto seed = static_cast<uint64_t>(i);
    const std::vector<Tensor> in{
        uniform(TensorSpec(Shape{n, image[0], image[1], image[2]}, DType::kF32, run.layout), 0, 1, seed),
        uniform(TensorSpec(Shape{n}, DType::kI64), 0, 9, seed + 1000)};
    o.losses.push_back((how.captured ? replayed(in) : step(in))[0].item());
  }
  for (const auto* list : {&network->parameters(), &network->buffers()}) {
    for (const auto& t : *list) o.state.push_back(test::on_host(t.tensor));
  }
  for (const auto& [name, tensor] : optimizer->state()) o.state.push_back(test::on_host(tensor));
  emulator::set_order(Order::kForward);
  return o;
}

void expect_same(const Outcome& got, const Outcome& expected) {
  EXPECT_EQ(got.losses, expected.losses);
  ASSERT_EQ(got.state.size(), expected.state.size());
  for (size_t i = 0; i < got.state.size(); ++i)
    EXPECT_TRUE(test::bitwise_equal(got.state[i], expected.state[i])) << "tensor " << i;
}

void expect_close(const Outcome& got, const Outcome& expected, double bound) {
  for (size_t i = 0; i < got.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], expected.losses[i], bound * 10) << "loss " << i;
  for (size_t i = 0; i < got.state.size(); ++i)
    EXPECT_TRUE(test::close(got.state[i], expected.state[i], bound)) << "tensor " << i;
}

constexpr How kOnHost{.device = {}};

// What Adam divides by is next to 0 in its first steps, which magnifies rounding.
TEST(EmulatedTrainingTest, LeNetIsTheSameInEveryOrder) {
  for (const Training& run :
       {Training{"lenet", "sgd", 6, 4, Layout::kNchw}, Training{"lenet", "adam", 6, 4, Layout::kNhwc}}) {
    SCOPED_TRACE(run.optimizer);
    const Outcome eager = train(run, {});
    expect_same(train(run, {.captured = true}), eager);
#ifndef PLUMB_SANITIZED
    for (const Order order : {Order::kBackward, Order::kRandom, Order::kGreedy}) {
      SCOPED_TRACE(static_cast<int>(order));
      expect_same(train(run, {.order = order}), eager);
    }
#endif
    expect_close(eager, train(run, kOnHost), std::string_view(run.optimizer) == "adam" ? 1e-4 : 1e-5);
  }
}

#ifndef PLUMB_SANITIZED
TEST(EmulatedTrainingTest, ResNetIsTheSameCapturedAndOnTheHost) {
  const Training run{"resnet20", "sgd", 3, 2, Layout::kNchw};
  const Outcome eager = train(run, {.order = Order::kGreedy});
  expect_same(train(run, {.captured = true}), eager);
  expect_close(eager, train(run, kOnHost), 1e-3);
}

TEST(EmulatedTrainingTest, Vgg16IsTheSameInEveryOrder) {
  const Training run{"vgg16", "sgd", 2, 2, Layout::kNhwc};
  const Outcome eager = train(run, {});
  expect_same(train(run, {.captured = true}), eager);
  for (const Order order : {Order::kBackward, Order::kRandom, Order::kGreedy}) {
    SCOPED_TRACE(static_cast<int>(order));
    expect_same(train(run, {.order = order}), eager);
  }
  expect_close(eager, train(run, kOnHost), 1e-4);
}
#endif

}  // namespace
}  // namespace plumb
