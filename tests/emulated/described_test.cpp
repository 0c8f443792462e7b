// Devices that are not there.
#include "core/described.h"

#include <gtest/gtest.h>

#include "core/print.h"
#include "core/runtime.h"
#include "graph/program.h"
#include "models/network.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/reduce.h"
#include "optim/make.h"
#include "tests/support/compare.h"
#include "train/training_step.h"

namespace plumb {
namespace {

constexpr char kDescription[] =
    R"({"deviceName": "NVIDIA H200", "deviceVer": 900, "multiProcessorCount": 132, "totalGlobalMem": 150121545728})";

Device described() {
  static const Device d = describe_device(kDescription);
  return d;
}

TEST(DescribedTest, IsWhatItsDescriptionSays) {
  const DeviceProperties& p = runtime_of(described()).properties();
  EXPECT_EQ(p.name, "NVIDIA H200");
  EXPECT_EQ(p.capability, 90);
  EXPECT_EQ(p.multiprocessors, 132);
  EXPECT_EQ(p.memory_bytes, 150121545728u);
  EXPECT_EQ(p.description, kDescription);
  EXPECT_FALSE(runtime_of(described()).is_present());
}

TEST(DescribedTest, WhatIsNoDescriptionIsRefused) {
  const auto refuses = [](const std::string& text, const char* part) {
    return test::refused([&] { describe_device(text); }, part);
  };
  EXPECT_TRUE(refuses("", "is not an object of JSON"));
  EXPECT_TRUE(refuses("[1]", "is not an object of JSON"));
  EXPECT_TRUE(refuses("{}", "has no \"deviceName\"; it must have its name"));
  const std::string nested = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_TRUE(refuses("{\"deviceName\": " + nested + "}", "has \"deviceName\": array; it must be its name"));
  EXPECT_TRUE(refuses(R"({"deviceName": 3})", "has \"deviceName\": 3; it must be its name"));
  EXPECT_TRUE(refuses(R"({"deviceName": "x", "deviceVer": 900})", "has no \"multiProcessorCount\""));
  EXPECT_TRUE(refuses(R"({"deviceName": "x", "deviceVer": 900, "multiProcessorCount": 0, "totalGlobalMem": 1})",
                      "\"multiProcessorCount\": 0; it must be more than 0"));
}

TEST(DescribedTest, NothingIsReadThere) {
  const DeviceScope on(described());
  const Tensor x = full(Shape{2, 3}, 1, DType::kF32), y = add(x, to(Tensor::from({1.0f}, Shape{1}), described()));
  constexpr char kRefusal[] = "NVIDIA H200 is described and not here";
  EXPECT_TRUE(test::refused([&] { y.at({0, 0}); }, kRefusal));
  EXPECT_TRUE(test::refused([&] { sum(y).item(); }, kRefusal));
  EXPECT_TRUE(test::refused([&] { to(y, Device{}); }, kRefusal));
  EXPECT_EQ(to_string(y), "f32 (2, 3) nchw, on NVIDIA H200, which is described and not here");
}

TEST(DescribedTest, ItsMemoryEnds) {
  const Device small = describe_device(
      R"({"deviceName": "small", "deviceVer": 800, "multiProcessorCount": 1, "totalGlobalMem": 1048576})");
  const Tensor x = Tensor::empty(TensorSpec(Shape{1 << 17}), MemoryClass::kInput, small);
  EXPECT_TRUE(test::refused([&] { Tensor::empty(TensorSpec(Shape{1 << 18}), MemoryClass::kState, small); },
                            "out of memory on small: 1048576 bytes for state (524288 bytes are in use: input 524288)"));
}

TEST(DescribedTest, AStepIsPlannedAndNotRun) {
  const DeviceScope on(described());
  const auto network = models::make_network("lenet", 7);
  const auto optimizer = optim::make("sgd", network->trainable(), {});
  Generator generator(1);
  const Tensor images = test::random_tensor(TensorSpec(Shape{32, 1, 28, 28}), 1);
  const Tensor labels = Tensor::empty(TensorSpec(Shape{32}, DType::kI64), MemoryClass::kInput, described());
  training::TrainingStep step(*network, *optimizer, generator, training::StepMode::kEager);
  Program program = capture([&] { return step(images, labels); });
  EXPECT_GT(program.stats().arena_bytes, 0u);
  EXPECT_GT(program.kernels().size(), 20u);
  for (const PreparedKernel* p : program.kernels()) {
    EXPECT_EQ(p->policy.device, described()) << p->kind->name;
    EXPECT_GE(p->kernel->info().launches, 1) << p->kind->name;
  }
  EXPECT_TRUE(test::refused([&] { program.run(); }, "run: NVIDIA H200 is described and not here"));
}

}  // namespace
}  // namespace plumb
