// What the library does on a device on which things go wrong.
#include <gtest/gtest.h>

#include <algorithm>

#include "data/loader.h"
#include "data/synthetic.h"
#include "dispatch/gate.h"
#include "dispatch/policy.h"
#include "dispatch/timing.h"
#include "kernels/cuda/launch.h"
#include "models/network.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "optim/make.h"
#include "tests/support/compare.h"
#include "tests/support/scripted.h"
#include "train/training_step.h"

namespace plumb {
namespace {

// One for all tests: devices are added for the rest of the process.
struct Scripted {
  test::ScriptedRuntime* runtime;
  Device device;
};
const Scripted& scripted() {
  static const Scripted s = [] {
    auto made = std::make_unique<test::ScriptedRuntime>();
    test::ScriptedRuntime* const r = made.get();
    return Scripted{r, add_device(std::move(made))};
  }();
  return s;
}

class ScriptedTest : public testing::Test {
 protected:
  ~ScriptedTest() override {
    script_.fail_from = script_.fault_at = test::ScriptedRuntime::kNever;
    script_.holds_events = script_.fails_to_wait = false;
    script_.replays = test::ScriptedRuntime::kNever;
  }
  const Device device_ = scripted().device;
  test::ScriptedRuntime& script_ = *scripted().runtime;
  const DeviceScope on_{device_};
};

struct NothingArgs {
  int unused;
};
__global__ void nothing_kernel(const NothingArgs) {}

// The first candidate writes where no memory is, which the device tells later.
struct Perilous {
  static constexpr char kName[] = "perilous";
  using Params = NoParams;
  static void cuda(const Problem<Params>& p, Candidates& candidates) {
    cuda::offer(candidates, "harmful", "test:harmful", p.device, 1, [](const cuda::Queue& q, const Launch&) {
      scripted().runtime->fault_at = 0;
      q.launch<nothing_kernel>(cuda::Grid{{1}, {1}}, NothingArgs{});
      fail("an event: an illegal memory access was encountered");
    });
    cuda::offer(candidates, "harmless", "test:harmless", p.device, 1, [](const cuda::Queue& q, const Launch&) {
      q.launch<nothing_kernel>(cuda::Grid{{1}, {1}}, NothingArgs{});
    });
  }
};

double lenet_step() {
  const auto network = models::make_network("lenet", 7);
  const auto optimizer = optim::make("adam", network->trainable(), {});
  Generator generator(1);
  const Tensor images = test::random_tensor(TensorSpec(Shape{4, 1, 28, 28}), 1);
  const Tensor labels = test::from_doubles(std::vector<double>{1, 2, 3, 4}, TensorSpec(Shape{4}, DType::kI64));
  training::TrainingStep step(*network, *optimizer, generator, training::StepMode::kEager);
  return step(images, labels)[0].item();
}

TEST_F(ScriptedTest, WhenMemoryEndsAStepSaysSoAndLeavesNothingBehind) {
  lenet_step();  // prepares what is kept
  const auto begin = [&] {
    runtime_of(device_).release_idle_memory();
    script_.log.clear();
  };
  begin();
  const int64_t live = memory_of(device_).stats().live_total(), blocks = script_.live_blocks;
  lenet_step();
  const auto allocations = std::ranges::count(script_.log, "allocate");
  ASSERT_GT(allocations, 20);
  for (int64_t n = 0; n < allocations; ++n) {
    begin();
    script_.fail_from = n;
    const std::string error = test::error_of([] { lenet_step(); });
    EXPECT_TRUE(error.starts_with("out of memory on scripted: ")) << n << ": " << error;
    EXPECT_NE(error.find(" bytes are in use"), std::string::npos) << error;
    EXPECT_EQ(n > 0, error.find(": parameter ") != std::string::npos) << n << ": " << error;
    script_.fail_from = test::ScriptedRuntime::kNever;
    begin();
    EXPECT_EQ(memory_of(device_).stats().live_total(), live) << n;
    EXPECT_EQ(script_.live_blocks, blocks) << n;
  }
  EXPECT_EQ(lenet_step(), 0);
}

TEST_F(ScriptedTest, WhatGoesWrongIsToldAtTheNextWait) {
  script_.fault_at = 1;
  const Tensor x = full(Shape{10}, 1, DType::kF32), y = mul(x, x);
  const Tensor z = mul(y, y);
  EXPECT_TRUE(test::refused([&] { z.at({0}); }, "plumb:elementwise: an illegal memory access"));
  EXPECT_NO_THROW(z.at({0}));
}

TEST_F(ScriptedTest, NothingWaitsButReading) {
  const Tensor x = full(Shape{10}, 1, DType::kF32);
  x.at({0});
  script_.log.clear();
  const Tensor y = mul(add(x, x), x);
  to(Tensor::from({1.0f}, Shape{1}), device_);
  EXPECT_EQ(std::ranges::count(script_.log, "wait"), 0);
  const DeviceCounts before = runtime_of(device_).counts();
  y.at({0});
  const DeviceCounts after = runtime_of(device_).counts();
  EXPECT_EQ(std::ranges::count(script_.log, "wait"), 1);
  EXPECT_EQ(after.waits, before.waits + 1);
  EXPECT_EQ(after.to_host.count, before.to_host.count + 1);
  EXPECT_EQ(after.to_host.bytes, before.to_host.bytes + 4);
}

TEST_F(ScriptedTest, MemoryThatIsPutBackIsHandedOutAgainAtOnce) {
  void* first = full(Shape{1000}, 1, DType::kF32).value->data;
  script_.log.clear();
  EXPECT_EQ(full(Shape{1000}, 2, DType::kF32).value->data, first);
  EXPECT_EQ(std::ranges::count(script_.log, "allocate"), 0);
}

TEST_F(ScriptedTest, StagingIsWrittenAgainOnlyAfterItsCopy) {
  const datasets::Dataset set = datasets::synthetic({.image = {3, 8, 6}, .classes = 10, .count = 40});
  script_.holds_events = true;
  datasets::Loader loader(set, {.batch = 10, .workers = 0, .device = device_});
  datasets::Batch batch;
  loader.start_epoch(0);
  script_.log.clear();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(loader.next(batch));
    EXPECT_EQ(batch.images.device(), device_);
    EXPECT_EQ(std::ranges::count(script_.log, "copy to_device"), i + 1);
    EXPECT_EQ(std::ranges::count(script_.log, "wait_for"), i);  // for the batch before
  }
}

TEST_F(ScriptedTest, AnEpochThatCannotBeginIsOver) {
  const datasets::Dataset set = datasets::synthetic({.image = {3, 8, 6}, .classes = 10, .count = 40});
  script_.holds_events = true;
  datasets::Loader loader(set, {.batch = 10, .workers = 1, .device = device_});
  datasets::Batch batch;
  loader.start_epoch(0);
  ASSERT_TRUE(loader.next(batch));
  ASSERT_TRUE(loader.next(batch));
  script_.fails_to_wait = true;
  EXPECT_TRUE(test::refused([&] { loader.start_epoch(1); }, "a wait fails"));
  script_.fails_to_wait = false;
  EXPECT_FALSE(loader.next(batch));
  loader.start_epoch(1);
  EXPECT_TRUE(loader.next(batch));
}

TEST_F(ScriptedTest, ACandidateThatTakesTheDeviceAlongIsMeasuredOnce) {
  Policy policy = detail::ctx.policy;
  policy.search = Search::kMeasured;
  const PolicyScope measured(policy);
  const Tensor x = zeros(TensorSpec(Shape{8}));
  const auto choose = [&] { run<Perilous>({}, {x}, TensorSpec(Shape{1})); };
  EXPECT_TRUE(test::refused(choose, "harmful of perilous"));
  script_.log.clear();
  choose();
  EXPECT_EQ(std::ranges::count(script_.log, "launch test:harmful"), 0);
  EXPECT_EQ(std::ranges::count(script_.log, "launch test:harmless"), 1);
  policy.kernels = KernelSet::kVendor;  // nor by whoever has another choice
  const PolicyScope vendors(policy);
  EXPECT_NO_THROW(choose());
  EXPECT_EQ(std::ranges::count(script_.log, "launch test:harmful"), 0);
}

TEST_F(ScriptedTest, AWayThatFailsInTheMiddleIsPassedOver) {
  const auto way = [&](int64_t replays) { return [this, replays](Runtime::Stream) { script_.replays = replays; }; };
  constexpr int64_t kEndless = test::ScriptedRuntime::kNever;
  EXPECT_EQ(detail::fastest_of(device_, {way(10), way(kEndless)}).index, 1u);
  EXPECT_TRUE(test::refused([&] { detail::fastest_of(device_, {way(10), way(12)}); }, "a replay fails"));
}

}  // namespace
}  // namespace plumb
