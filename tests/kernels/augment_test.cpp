// Crop, flip and normalise: every kernel against the reference, and what a window means.
#include "kernels/augment.h"

#include <gtest/gtest.h>

#include "dispatch/gate.h"
#include "ops/convert.h"
#include "ops/random.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb {
namespace {

Tensor windows_of(std::initializer_list<functors::Window> list) {
  std::vector<int32_t> numbers;
  for (const functors::Window& w : list) numbers.insert(numbers.end(), {w.dy, w.dx, w.flip});
  return Tensor::from(std::span<const int32_t>(numbers), Shape{static_cast<int64_t>(list.size()), 3});
}

Tensor augmented(const Tensor& pixels, const Tensor& windows, const Tensor& table, DType dtype, Layout layout) {
  const Device device = detail::ctx.policy.device;
  const Tensor y = Tensor::empty(TensorSpec(pixels.shape(), dtype, layout), MemoryClass::kInput, device);
  update<Augment>({}, {to(pixels, device), to(windows, device), to(table, device), y}, Writes{3, 1});
  return y;
}

TEST(AugmentTest, KernelsMatchTheReferenceAndStayInTheirMemory) {
  test::KernelCheck check(2);
  for (const Shape& image : {Shape{3, 8, 8}, Shape{1, 5, 7}, Shape{3, 32, 32}, Shape{2, 1, 33}, Shape{1, 1, 1}}) {
    const Shape shape{5, image[0], image[1], image[2]};
    const auto h = static_cast<int32_t>(image[1]), w = static_cast<int32_t>(image[2]);
    const Tensor pixels = uniform(TensorSpec(shape, DType::kU8), 0, 255, 1);
    const Tensor table = uniform(Shape{image[0], functors::kPixelValues}, -2, 2, 2);
    const Tensor windows =
        windows_of({{0, 0, 0}, {0, 0, 1}, {1 - h, w - 1, 1}, {2, -3, 0}, {h + 5, 3 * w, 1}});  // the last is all black
    for (const DType t : {DType::kF32, DType::kBf16}) {
      for (const Layout layout : {Layout::kNchw, Layout::kNhwc, Layout::kChwn})
        augmented(pixels, windows, table, t, layout);
    }
  }
  EXPECT_FALSE(check.checked().empty());
}

TEST(AugmentTest, AWindowIsMovedThenMirrored) {
  const Tensor pixels =
      Tensor::from({uint8_t{1}, uint8_t{2}, uint8_t{3}, uint8_t{4}, uint8_t{5}, uint8_t{6}}, Shape{1, 1, 2, 3});
  std::vector<float> values(functors::kPixelValues);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 1;  // black is -1
  const Tensor table = Tensor::from(std::span<const float>(values), Shape{1, functors::kPixelValues});

  const Tensor y = augmented(pixels, windows_of({{1, -1, 1}}), table, DType::kF32, Layout::kNchw);

  const DeviceScope on_host({});
  EXPECT_TRUE(
      test::bitwise_equal(to(y, Device{}), Tensor::from({4.f, 3.f, -1.f, -1.f, -1.f, -1.f}, Shape{1, 1, 2, 3})));
}

}  // namespace
}  // namespace plumb
