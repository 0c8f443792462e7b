// Convolutions that some of oneDNN's kernels get wrong: those are passed over.
#include <gtest/gtest.h>

#include <random>

#include "dispatch/gate.h"
#include "dispatch/policy.h"
#include "kernels/conv2d.h"
#include "ops/conv2d.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb::test {
namespace {

// All three convolutions, and every candidate that takes one of them, against the definition in f64.
void check(const Shape& x, const Shape& w, const Conv2dParams& p, DType dtype = DType::kBf16) {
  for (const Layout layout : {Layout::kNhwc, Layout::kNchw}) {
    const TensorSpec xs(x, dtype, layout), ws(w, dtype), ys = conv2d_output(p, xs, ws);
    SCOPED_TRACE(message("x {} w {} stride {} {} dilation {} {} padding {} {} {} {}", xs, ws, p.stride[0], p.stride[1],
                         p.dilation[0], p.dilation[1], p.padding[0], p.padding[1], p.padding[2], p.padding[3]));
    const Tensor image = random_tensor(xs, 1), filter = random_tensor(ws, 2), dy = random_tensor(ys, 3);
    KernelCheck check(4);
    for (const char* algorithm : {"direct", "blocked"}) {
      const PolicyScope scope({.algorithm = algorithm_id(algorithm)});
      run<Conv2dForward>(p, {image, filter}, ys);
      run<Conv2dBackwardInput>(p, {dy, filter}, xs);
      run<Conv2dBackwardWeight>(p, {dy, image}, ws);
    }
  }
}

TEST(Conv2dOneDnn, WindowsInThePaddingAreSummed) {
  check(Shape{1, 14, 2, 5}, Shape{28, 14, 1, 5}, {.stride = {4, 2}, .padding = {0, 5, 2, 3}});
  check(Shape{3, 23, 8, 10}, Shape{30, 23, 2, 5}, {.stride = {2, 4}, .padding = {0, 2, 3, 0}});
  check(Shape{4, 6, 7, 4}, Shape{17, 6, 1, 3}, {.stride = {3, 2}, .padding = {0, 3, 3, 2}});
  check(Shape{4, 17, 2, 4}, Shape{16, 17, 3, 2}, {.stride = {3, 3}, .padding = {1, 3, 4, 0}});
  check(Shape{3, 13, 2, 10}, Shape{69, 13, 1, 5}, {.stride = {1, 2}, .padding = {0, 1, 0, 0}});
  check(Shape{3, 6, 7, 14}, Shape{7, 6, 1, 4}, {.stride = {2, 4}, .dilation = {1, 3}, .padding = {3, 0, 3, 0}});
}

TEST(Conv2dOneDnn, WeightsOfDilatedWindowsAreSummed) {
  check(Shape{4, 57, 9, 9}, Shape{37, 57, 4, 5}, {.dilation = {2, 2}, .padding = {0, 2, 4, 3}});
  check(Shape{3, 67, 7, 4}, Shape{67, 67, 2, 3}, {.dilation = {2, 1}});
  check(Shape{5, 144, 8, 3}, Shape{76, 36, 3, 1}, {.stride = {1, 3}, .dilation = {2, 2}, .groups = 4});
  check(Shape{1, 52, 13, 5}, Shape{2, 52, 3, 4}, {.dilation = {2, 1}, .padding = {0, 0, 0, 3}});
  check(Shape{4, 47, 4, 8}, Shape{70, 47, 2, 3}, {.stride = {4, 2}, .dilation = {3, 1}, .padding = {0, 0, 2, 0}});
}

TEST(Conv2dOneDnn, RandomWindowsAreSummed) {
  std::mt19937 engine(7);
  const auto draw = [&](int low, int high) {
    return static_cast<int32_t>(low + static_cast<int>(engine() % static_cast<unsigned>(high - low + 1)));
  };
  for (int round = 0; round < 40; ++round) {
    Conv2dParams p{.groups = draw(0, 4) ? 1 : 2};
    for (int i = 0; i < 2; ++i) {
      p.stride[i] = draw(1, 4);
      p.dilation[i] = draw(1, 3);
    }
    for (int32_t& side : p.padding) side = draw(0, 1) ? 0 : draw(1, 5);
    const int64_t kh = draw(1, 4), kw = draw(1, 4);
    const auto extent = [&](int64_t kernel, int i) {
      const int64_t window = (kernel - 1) * p.dilation[i] + 1 - p.padding[2 * i] - p.padding[2 * i + 1];
      return std::max<int64_t>(1, window + draw(0, 6));
    };
    const int64_t h = extent(kh, 0), w = extent(kw, 1), c = draw(1, 60);
    check(Shape{draw(1, 4), p.groups * c, h, w}, Shape{p.groups * draw(1, 40), c, kh, kw}, p);
  }
}

TEST(Conv2dOneDnn, GradientsOfFewStridedChannelsAreSummedInTheirMemory) {
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    for (const int64_t c : {1, 3, 4, 7, 8, 15, 16}) {
      check(Shape{1, c, 10, 8}, Shape{4, c, 1, 1}, {.stride = {1, 2}}, dtype);
      check(Shape{3, c, 7, 14}, Shape{15, c, 1, 1}, {.stride = {2, 3}}, dtype);
      check(Shape{2, 2 * c, 9, 11}, Shape{10, c, 1, 1}, {.stride = 2, .groups = 2}, dtype);
    }
  }
}

}  // namespace
}  // namespace plumb::test
