// What running a plan costs once it is made: counted in front of cuDNN, for a GPU that is not there.
#include <gtest/gtest.h>

#include "app/device_description.h"
#include "bench/allocations.h"
#include "core/described.h"
#include "kernels/cuda/vendor/cudnn.h"
#include "kernels/cuda/vendor/shared_library.h"
#include "ops/conv2d.h"
#include "tests/support/compare.h"

namespace plumb {
namespace {

int created, initialized, finalized;
cuda::Cudnn real;

// Counts what is built, and passes it on.
class WarmPlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    static const Device h200 = describe_device(app::device_description("h200"));
    device_ = h200;
    real = cuda::cudnn();
    cuda::Cudnn& library = cuda::cudnn();
    library.create_descriptor = [](cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* made) {
      ++created;
      return real.create_descriptor(type, made);
    };
    library.initialize = [](cudnnBackendDescriptor_t d) {
      ++initialized;
      return real.initialize(d);
    };
    library.finalize = [](cudnnBackendDescriptor_t d) {
      ++finalized;
      return real.finalize(d);
    };
    created = initialized = finalized = 0;
  }
  void TearDown() override { cuda::cudnn() = real; }

  Tensor images() const { return Tensor::empty(TensorSpec(Shape{8, 16, 14, 14}), MemoryClass::kInput, device_); }
  Device device_;
};

TEST_F(WarmPlanTest, AllocatesNothingAndBuildsNothing) {
  const DeviceScope on(device_);
  const Tensor x = images(), other = images();
  const Tensor w = Tensor::empty(TensorSpec(Shape{32, 16, 3, 3}), MemoryClass::kParameter, device_);
  const Tensor b = Tensor::empty(TensorSpec(Shape{32}), MemoryClass::kParameter, device_);
  const Conv2dParams p{.padding = 1, .activation = Activation::kRelu};
  // The threads' own lists grow in the first rounds.
  for (int i = 0; i < 8; ++i) conv2d(i % 2 ? x : other, w, b, p);
  EXPECT_GT(created, 20) << "descriptors of tensors, heuristics, plans";
  created = initialized = finalized = 0;
  int64_t before = bench::allocation_count();
  for (int i = 0; i < 10; ++i) conv2d(x, w, b, p);
  EXPECT_EQ(bench::allocation_count() - before, 0);
  EXPECT_EQ(created, 0);
  EXPECT_LE(initialized, 1) << "the pointers stay what they are";
  before = bench::allocation_count();
  initialized = finalized = 0;
  for (int i = 0; i < 10; ++i) conv2d(i % 2 ? x : other, w, b, p);
  EXPECT_EQ(bench::allocation_count() - before, 0);
  EXPECT_EQ(created, 0);
  EXPECT_EQ(initialized, 10) << "pointed elsewhere, in the same memory";
  EXPECT_EQ(finalized, 10);
}

TEST_F(WarmPlanTest, AWrongShapeIsRefusedBeforeCudnnSeesIt) {
  const DeviceScope on(device_);
  const Tensor x = images();
  const Tensor w = Tensor::empty(TensorSpec(Shape{32, 17, 3, 3}), MemoryClass::kParameter, device_);
  EXPECT_TRUE(test::refused([&] { conv2d(x, w); }, "conv2d: "));
  EXPECT_EQ(created, 0);
}

TEST_F(WarmPlanTest, ADescriptionThatCudnnRefusesIsASentence) {
  const Device d = describe_device(
      R"({"deviceName": "x", "deviceVer": 900, "multiProcessorCount": 132, "totalGlobalMem": 150121545728})");
  const DeviceScope on(d);
  const Tensor x = Tensor::empty(TensorSpec(Shape{8, 16, 14, 14}), MemoryClass::kInput, d);
  const Tensor w = Tensor::empty(TensorSpec(Shape{32, 16, 3, 3}), MemoryClass::kParameter, d);
  EXPECT_TRUE(test::refused([&] { conv2d(x, w); }, "refuses the description of the device"));
  EXPECT_TRUE(test::refused([&] { conv2d(x, w); }, "refuses the description of the device")) << "and goes on";
}

TEST(SharedLibraryTest, WhatIsNotThereIsASentence) {
  EXPECT_TRUE(test::refused([] { cuda::SharedLibrary("libnowhere.so.9", "Nowhere 9"); },
                            "Nowhere 9 cannot be opened (libnowhere.so.9: cannot open shared object file"));
  const cuda::SharedLibrary cudnn("libcudnn.so.9", "cuDNN 9");
  EXPECT_TRUE(test::refused([&] { cudnn.symbol("cudnnNowhere"); }, "libcudnn.so.9 has no function cudnnNowhere"));
}

}  // namespace
}  // namespace plumb
