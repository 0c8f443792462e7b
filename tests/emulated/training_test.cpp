// Networks train on the emulated device: eager and captured, and whatever the order of blocks and threads, bit for bit
// the same, and as on the host but for rounding.
#include <gtest/gtest.h>

#include "kernels/cuda/emulator/threads.h"
#include "tests/support/trainings.h"

namespace plumb {
namespace {

using emulator::Order;
using test::expect_close;
using test::expect_same;
using test::Trained;
using test::Training;

constexpr Device kEmulated{DeviceType::kCuda, 0};

Trained train(const Training& run, Order order = Order::kForward, bool is_captured = false) {
  emulator::set_order(order);
  Trained t = test::train(run, kEmulated, is_captured);
  emulator::set_order(Order::kForward);
  return t;
}
Trained captured(const Training& run) { return train(run, Order::kForward, true); }
Trained on_host(const Training& run) { return test::train(run, {}, false); }

// What Adam divides by is next to 0 in its first steps, which magnifies rounding.
TEST(EmulatedTrainingTest, LeNetIsTheSameInEveryOrder) {
  for (const Training& run :
       {Training{"lenet", "sgd", 6, 4, Layout::kNchw}, Training{"lenet", "adam", 6, 4, Layout::kNhwc}}) {
    SCOPED_TRACE(run.optimizer);
    const Trained eager = train(run);
    expect_same(captured(run), eager);
#ifndef PLUMB_SANITIZED
    for (const Order order : {Order::kBackward, Order::kRandom, Order::kGreedy}) {
      SCOPED_TRACE(static_cast<int>(order));
      expect_same(train(run, order), eager);
    }
#endif
    expect_close(eager, on_host(run), std::string_view(run.optimizer) == "adam" ? 1e-4 : 1e-5);
  }
}

#ifndef PLUMB_SANITIZED
TEST(EmulatedTrainingTest, ResNetIsTheSameCapturedAndOnTheHost) {
  const Training run{"resnet20", "sgd", 3, 2, Layout::kNchw};
  const Trained eager = train(run, Order::kGreedy);
  expect_same(captured(run), eager);
  expect_close(eager, on_host(run), 1e-3);
}

TEST(EmulatedTrainingTest, Vgg16IsTheSameInEveryOrder) {
  const Training run{"vgg16", "sgd", 2, 2, Layout::kNhwc};
  const Trained eager = train(run);
  expect_same(captured(run), eager);
  for (const Order order : {Order::kBackward, Order::kRandom, Order::kGreedy}) {
    SCOPED_TRACE(static_cast<int>(order));
    expect_same(train(run, order), eager);
  }
  expect_close(eager, on_host(run), 1e-4);
}
#endif

}  // namespace
}  // namespace plumb
