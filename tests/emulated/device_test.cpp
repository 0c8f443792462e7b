#include <gtest/gtest.h>

#include "core/print.h"
#include "core/runtime.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "tests/support/compare.h"

namespace plumb {
namespace {

const Device kDevice{DeviceType::kCuda, 0};

TEST(DeviceTest, IsCalledWhatItIs) {
  EXPECT_EQ(runtime_of(kDevice).properties().name, "emulated");
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

TEST(DeviceTest, DevicesDoNotMix) {
  const Tensor x = ones(Shape{2, 3}, DType::kF32), y = to(x, kDevice);
  EXPECT_TRUE(test::refused([&] { add(x, y); }, "add: input 1 is on cuda:0 and input 0 on cpu; bring them together"));
}

TEST(DeviceTest, OpsRunThere) {
  const DeviceScope on(kDevice);
  const Tensor x = full(Shape{1000}, 2, DType::kF32);
  EXPECT_EQ(x.device(), kDevice);
  EXPECT_TRUE(test::bitwise_equal(to(mul(add(x, x), x), Device{}), [] {
    const DeviceScope on_host({});
    return full(Shape{1000}, 8, DType::kF32);
  }()));
}

}  // namespace
}  // namespace plumb
