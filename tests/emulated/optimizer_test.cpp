// Optimizers step on a device as they do on the host.
#include <gtest/gtest.h>

#include "core/runtime.h"
#include "graph/program.h"
#include "ops/convert.h"
#include "tests/optim/optimizers.h"
#include "tests/support/compare.h"

namespace plumb::optim {
namespace {

const Device kDevice{DeviceType::kCuda, 0};

std::vector<Tensor> there(const std::vector<Tensor>& list, bool are_parameters) {
  std::vector<Tensor> moved;
  for (const Tensor& t : list) {
    moved.push_back(to(t.detached(), kDevice));
    if (are_parameters) moved.back().require_grad();
  }
  return moved;
}

void expect_steps_of_the_host(const Make& make, std::span<const Shape> shapes, DType t, uint64_t steps) {
  const auto here = parameters_of(shapes, 1, t), moved = there(here, true);
  const auto of_host = make(here), of_device = make(moved);
  for (uint64_t step = 0; step < steps; ++step) {
    const auto g = made(shapes, 20 + step, t);
    of_host->step(g);
    of_device->step(there(g, false));
  }

  EXPECT_EQ(of_device->steps(), static_cast<int64_t>(steps));
  const auto expected = of_host->state(), got = of_device->state();
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].first, expected[i].first);
    ASSERT_TRUE(test::close(to(got[i].second, Device{}), expected[i].second, 1e-5))
        << got[i].first << " in " << to_string(t);
  }
  for (size_t i = 0; i < here.size(); ++i)
    ASSERT_TRUE(test::close(to(moved[i].detached(), Device{}), here[i].detached(), t == DType::kBf16 ? 0.01 : 1e-5))
        << i;
}

TEST(DeviceOptimizerTest, StepsAreThoseOfTheHost) {
  const Shape shapes[] = {{1}, {31}, {0, 3}, {33}, {9001}, {16, 3, 3, 3}, {}};
  for (const DType t : {DType::kF32, DType::kF64, DType::kBf16}) {
    for (const Make& make : every_optimizer()) expect_steps_of_the_host(make, shapes, t, 3);
  }
}

// Eager and replayed.
TEST(DeviceOptimizerTest, CountingStepsWaitsForNothing) {
  const auto w = there(parameters_of(kTwo, 1), true), g = there(made(kTwo, 5), false);
  Adam adam(w, {});
  Program program = capture([&] { adam.step(g); });
  Runtime& runtime = runtime_of(kDevice);
  const DeviceCounts before = runtime.counts();
  for (int i = 0; i < 3; ++i) program.run();
  adam.step(g);
  EXPECT_EQ(adam.steps(), 4);
  const DeviceCounts done = runtime.counts() - before;
  EXPECT_EQ(done.waits, 0);
  EXPECT_EQ(done.to_host.count, 0);

  const Tensor step = to(adam.state()[1].second, Device{});
  EXPECT_EQ(step.data<int64_t>()[0], 4);
}

// More than one launch takes.
TEST(DeviceOptimizerTest, TakesThousandsOfParameters) {
  expect_steps_of_the_host(maker<Adam>({}), std::vector<Shape>(2500, Shape{3}), DType::kF32, 1);
}

}  // namespace
}  // namespace plumb::optim
