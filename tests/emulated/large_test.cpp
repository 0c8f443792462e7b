// Tensors of 2^31 elements and more: offsets and divisions in 64 bits.
#include <gtest/gtest.h>

#include <random>

#include "kernels/cuda/divide.h"
#include "ops/conv2d.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/pool2d.h"
#include "ops/reduce.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "tests/support/compare.h"
#include "tests/support/scripted.h"

namespace plumb {
namespace {

constexpr int64_t kMany = (int64_t{1} << 31) + 35;

TEST(LargeTest, DivisorsAreRightBelowAndAbove2To31) {
  std::mt19937_64 random(1);
  const int64_t by[] = {
      1, 2, 3, 7, 641, 65535, 65536, 0x7ffffffe, 0x7fffffff, int64_t{1} << 31, kMany, int64_t{1} << 40};
  for (const int64_t d : by) {
    const cuda::Divisor divisor(d);
    for (int i = 0; i < 2000; ++i) {
      const int64_t near = static_cast<int64_t>(random() % 8) - 4,
                    any = static_cast<int64_t>(random() >> (1 + random() % 50));
      for (const int64_t n : {any, kMany + near, d * static_cast<int64_t>(random() % 1000) + near, 0x7fffffff + near}) {
        if (n < 0) continue;
        int64_t rest = n;
        ASSERT_EQ(divisor.divide(rest), n / d) << n << " / " << d;
        ASSERT_EQ(rest, n % d);
      }
    }
  }
}

TEST(LargeTest, BytesBeyond2To31AreReached) {
  const Device device{DeviceType::kCuda, 0};
  const DeviceScope on(device);
  const Tensor x = full(Shape{kMany}, 7, DType::kU8);
  constexpr int64_t kEnd = kMany / 16 * 16;  // its last 16-byte boundary
  Tensor end = Tensor::wrap(
      static_cast<uint8_t*>(x.value->data) + kEnd, TensorSpec(Shape{kMany - kEnd}, DType::kU8), [keep = x](void*) {},
      device);
  ASSERT_EQ(end.numel(), 3);
  end.copy_from(Tensor::from({uint8_t{1}, uint8_t{2}, uint8_t{3}}, Shape{3}));

  const Tensor last = to(slice(x, {kMany - 5}, {5}), Device{});

  EXPECT_TRUE(
      test::bitwise_equal(last, Tensor::from({uint8_t{7}, uint8_t{7}, uint8_t{1}, uint8_t{2}, uint8_t{3}}, Shape{5})));
}

// Every kernel finds a grid for them, which a described device plans.
TEST(LargeTest, EveryOpTakesThem) {
  const DeviceScope on(test::a_described_device());
  const Tensor images = zeros(TensorSpec(Shape{64, 32, 1024, 1025}, DType::kBf16, Layout::kNhwc));
  ASSERT_GT(images.numel(), kMany);
  const Tensor w = zeros(Shape{32, 32, 3, 3}, DType::kBf16);
  EXPECT_EQ(relu(images).spec(), images.spec());
  EXPECT_EQ(add(images, images).spec(), images.spec());
  EXPECT_EQ(conv2d(images, w, {.padding = {1, 1}}).spec(), images.spec());
  EXPECT_EQ(max_pool2d(images, {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}}).spec(), images.spec());
  EXPECT_EQ(sum(images, {0, 2, 3}).shape(), (Shape{32}));
  EXPECT_EQ(softmax(images, 1).spec(), images.spec());
  EXPECT_EQ(to(images, Layout::kNchw).layout(), Layout::kNchw);
  EXPECT_EQ(to(images, DType::kF32).numel(), images.numel());
}

// Places in an image are 32-bit numbers.
TEST(LargeTest, ImagesOfLargeExtentsAreRefused) {
  const DeviceScope on(test::a_described_device());
  constexpr int64_t kExtent = int64_t{1} << 30;
  constexpr char kWhy[] = "with their padding are too large for the kernels of a device";
  for (const Shape& s : {Shape{1, 1, 1, kExtent}, Shape{1, 1, kExtent, 1}}) {
    Tensor x = zeros(s, DType::kBf16);
    const Pool2dParams pixel{.kernel = {1, 1}};
    EXPECT_TRUE(test::refused([&] { conv2d(x, zeros(Shape{1, 1, 1, 1}, DType::kBf16), Conv2dParams{}); }, kWhy));
    EXPECT_TRUE(test::refused([&] { max_pool2d(x, pixel); }, kWhy));
    EXPECT_TRUE(test::refused([&] { avg_pool2d(x, pixel); }, kWhy));
  }
}

}  // namespace
}  // namespace plumb
