#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "core/print.h"
#include "core/runtime.h"
#include "graph/program.h"
#include "kernels/cuda/emulator/runtime.h"
#include "ops/convert.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "ops/index_select.h"
#include "ops/reduce.h"
#include "tests/support/compare.h"
#include "tests/support/trainings.h"

namespace plumb {
namespace {

const Device kDevice{DeviceType::kCuda, 0};

TEST(DeviceTest, IsCalledWhatItIs) {
  EXPECT_EQ(runtime_of(kDevice).properties().name, "emulated");
  EXPECT_EQ(devices()[0], kDevice);
  EXPECT_EQ(device_from_string("cuda"), kDevice);
  EXPECT_EQ(device_from_string("cuda:0"), kDevice);
  EXPECT_TRUE(test::refused([] { device_from_string("cuda:7"); }, "\"cuda:7\": this process has"));
  EXPECT_TRUE(test::refused([] { device_from_string("cuda:x"); }, "\"cuda:x\" is unknown; use cpu, cuda or cuda:N"));
  EXPECT_TRUE(test::refused([] { device_from_string("cuda:256"); }, "is unknown"));
}

TEST(DeviceTest, TensorsGoThereAndBack) {
  const Tensor x = Tensor::from({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, Shape{2, 3});
  const Tensor y = to(x, kDevice);
  EXPECT_EQ(y.device(), kDevice);
  EXPECT_EQ(y.spec(), x.spec());
  EXPECT_TRUE(test::bitwise_equal(to(y, Device{}), x));
  EXPECT_EQ(y.at({1, 1}), 5.0);
  EXPECT_EQ(to_string(y), "f32 (2, 3) nchw on cuda:0\n[[1, 2, 3],\n [4, 5, 6]]");
  EXPECT_TRUE(test::refused([&] { y.data<float>(); }, "bring it with to(x, Device())"));
}

TEST(DeviceTest, MemoryThatIsWrappedIsAligned) {
  const Tensor x = full(Shape{64}, 1, DType::kF32).clone();
  const Tensor there = to(x, kDevice);
  char* const data = static_cast<char*>(there.value->data);
  const TensorSpec spec(Shape{8});
  EXPECT_NO_THROW(Tensor::wrap(data + 16, spec, {}, kDevice));
  EXPECT_TRUE(test::refused([&] { Tensor::wrap(data + 4, spec, {}, kDevice); }, "that is not aligned to 16 bytes"));
  EXPECT_NO_THROW(Tensor::wrap(const_cast<float*>(x.data<float>().data()) + 1, spec));  // the host's needs no more
}

// What lies between it and the pages that nobody may touch.
TEST(DeviceTest, AWriteBesideABlockOfMemoryEndsTheProcess) {
  const auto write_at = [](int64_t i) {
    const auto runtime = emulator::make_runtime();
    auto* const block = static_cast<char*>(runtime->allocate(100));
    block[i] = 1;
    runtime->release(block, 100);
  };
  write_at(0), write_at(99);
  for (const int64_t i : {-3840, -1, 100, 255})
    EXPECT_DEATH(write_at(i), "a kernel wrote beside a block of memory of 100 bytes") << i;
}

TEST(DeviceTest, CopiesGoFromAnyDeviceToAny) {
  const Device other = add_device(emulator::make_runtime());
  EXPECT_EQ(devices().back(), other);
  const Tensor x = test::random_tensor(TensorSpec(Shape{33}), 1);
  Tensor y = Tensor::empty(x.spec(), MemoryClass::kInput, kDevice),
         z = Tensor::empty(x.spec(), MemoryClass::kInput, other), back = Tensor::empty(x.spec());
  y.copy_from(x);
  z.copy_from(y);
  back.copy_from(z);
  EXPECT_TRUE(test::bitwise_equal(back, x));
  EXPECT_TRUE(test::refused([&] { add(y, z); }, "add: input 1 is on"));
  EXPECT_TRUE(test::refused([&] { capture([&] { y.copy_from(x); }); }, "copy_from: a step is being captured"));
  EXPECT_TRUE(
      test::refused([&] { capture([&] {
                            return TensorList{add(y, y), add(x, x)};
                          }); }, "a program is of one device"));
}

TEST(DeviceTest, TwoOfThemTrainAtTheSameTime) {
  const Device other = add_device(emulator::make_runtime());
  const test::Training run{"lenet", "adam", 4, 4};
  const test::Trained alone = test::train(run, kDevice, false);
  test::Trained first, second;
  std::thread there([&] { second = test::train(run, other, true); });
  first = test::train(run, kDevice, true);
  there.join();
  test::expect_same(first, alone);
  test::expect_same(second, alone);
}

TEST(DeviceTest, ALabelOutOfRangeIsToldAtTheNextWait) {
  const DeviceScope on(kDevice);
  const Tensor logits = test::random_tensor(TensorSpec(Shape{3, 10}), 1).require_grad();
  const auto labels = [](double last) {
    return test::from_doubles(std::vector<double>{1, 2, last}, TensorSpec(Shape{3}, DType::kI64));
  };
  for (const double bad : {10.0, -1.0}) {
    const Tensor loss = cross_entropy(logits, labels(bad));
    const std::string sentence = message("cross_entropy: the label of row 2 is {}; with 10 classes", bad);
    EXPECT_TRUE(test::refused([&] { loss.item(); }, sentence));
    EXPECT_TRUE(std::isnan(loss.item()));
    const Tensor dx = grad(loss, {logits})[0];
    EXPECT_TRUE(test::refused([&] { dx.at({2, 0}); }, sentence));
    EXPECT_TRUE(std::isnan(dx.at({2, 0})));
    EXPECT_FALSE(std::isnan(dx.at({1, 0})));
  }
  EXPECT_FALSE(std::isnan(cross_entropy(logits, labels(9)).item()));
}

TEST(DeviceTest, AnIndexOutOfRangeIsToldAtTheNextWait) {
  for (const int64_t slices : {100, 7000}) {  // whose lists one block makes, and several launches
    const Tensor x = to(test::random_tensor(Shape{slices, 3}, 1), kDevice);
    for (const int64_t bad : {int64_t{-1}, slices, int64_t{1} << 40}) {
      const Tensor index = to(Tensor::from({int64_t{0}, slices - 1, bad}, Shape{3}), kDevice);
      const std::string says = message("the index at 2 is {}; with {} slices", bad, slices);
      EXPECT_TRUE(test::refused([&] { to(index_select(x, 0, index), Device{}); }, "index_select: " + says));
      const auto add = [&] {
        to(index_add(index_select(x, 0, to(Tensor::from({int64_t{0}, int64_t{1}, int64_t{2}}, Shape{3}), kDevice)), 0,
                     index, slices),
           Device{});
      };
      EXPECT_TRUE(test::refused(add, "index_add: " + says));
    }
  }
}

TEST(DeviceTest, WhatACapturedStepMadeIsNotCopiedBetweenDevices) {
  const Tensor x = to(test::random_tensor(TensorSpec(Shape{5}), 1), kDevice), host = test::random_tensor(x.spec(), 2);
  Tensor made;
  const Program step = capture([&] { return TensorList{made = relu(x)}; });
  const char* why = "comes from a captured step and has no memory outside of it";
  EXPECT_TRUE(test::refused([&] { Tensor(host).copy_from(made); }, why));
  EXPECT_TRUE(test::refused([&] { made.copy_from(host); }, why));
}

TEST(DeviceTest, GradientsPassBetweenDevices) {
  Tensor x = test::random_tensor(TensorSpec(Shape{5}), 1);
  x.require_grad();
  const Tensor there = to(x, kDevice);
  const Tensor dx = grad(sum(mul(there, there)), {x})[0];
  EXPECT_TRUE(dx.device().is_cpu());
  EXPECT_TRUE(test::bitwise_equal(dx, add(x.detached(), x.detached())));
}

}  // namespace
}  // namespace plumb
