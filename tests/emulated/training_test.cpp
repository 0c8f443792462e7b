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

// Eager and captured, in every order, and within `bound` of the host.
void expect_the_same_everywhere(const Training& run, double bound) {
  SCOPED_TRACE(message("{} by {}", run.model, run.optimizer));
  const Trained eager = train(run);
  expect_same(captured(run), eager);
#ifndef PLUMB_SANITIZED
  for (const Order order : {Order::kBackward, Order::kRandom, Order::kGreedy}) {
    SCOPED_TRACE(static_cast<int>(order));
    expect_same(train(run, order), eager);
  }
#endif
  expect_close(eager, on_host(run), bound);
}

// What Adam divides by is next to 0 in its first steps, which magnifies rounding.
TEST(EmulatedTrainingTest, LeNetIsTheSameInEveryOrder) {
  expect_the_same_everywhere({"lenet", "sgd", 6, 4, Layout::kNchw}, 1e-5);
  expect_the_same_everywhere({"lenet", "adam", 6, 4, Layout::kNhwc}, 1e-4);
}

#ifndef PLUMB_SANITIZED
TEST(EmulatedTrainingTest, ResNetIsTheSameCapturedAndOnTheHost) {
  const Training run{"resnet20", "sgd", 3, 2, Layout::kNchw};
  const Trained eager = train(run, Order::kGreedy);
  expect_same(captured(run), eager);
  expect_close(eager, on_host(run), 1e-3);
}

TEST(EmulatedTrainingTest, Vgg16IsTheSameInEveryOrder) {
  expect_the_same_everywhere({"vgg16", "sgd", 2, 2, Layout::kNhwc}, 1e-4);
}
#endif

}  // namespace
}  // namespace plumb
