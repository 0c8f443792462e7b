// slice, pad and pad2d against plain loops over indices.
#include "ops/slice.h"
#include "ops/pad2d.h"
#include "tests/ops/movement.h"

namespace plumb::test {
namespace {

void check_slice_and_pad(const Tensor& x, const Shape& begin, const Shape& extents) {
  const std::vector<double> elements = to_doubles(x);
  const auto shifted = [&](const Index& i, int64_t sign) {
    Index from{};
    for (int d = 0; d < x.rank(); ++d) from[static_cast<size_t>(d)] = i[static_cast<size_t>(d)] + sign * begin[d];
    return from;
  };

  const Tensor part = slice(x, begin, extents);
  const Tensor padded = pad(part, begin, x.shape(), 2);

  ASSERT_EQ(part.spec(), x.spec().with(extents));
  ASSERT_EQ(padded.spec(), x.spec());
  const auto source = [&](const Index& i) { return elements[static_cast<size_t>(position(x.shape(), shifted(i, 1)))]; };
  EXPECT_EQ(to_doubles(part), expected(extents, source))
      << to_string(x.spec()) << " " << to_string(begin) << " " << to_string(extents);
  const auto source_or_two = [&](const Index& i) {
    const Index from = shifted(i, -1);
    for (int d = 0; d < x.rank(); ++d) {
      const int64_t k = from[static_cast<size_t>(d)];
      if (k < 0 || k >= extents[d]) return 2.0;
    }
    return elements[static_cast<size_t>(position(x.shape(), i))];
  };
  EXPECT_EQ(to_doubles(padded), expected(x.shape(), source_or_two))
      << to_string(x.spec()) << " " << to_string(begin) << " " << to_string(extents);
}

struct Box {
  Shape all, begin, extents;
};
const Box kBoxes[] = {
    {{}, {}, {}},
    {{33}, {3}, {17}},
    {{33}, {0}, {0}},
    {{100000}, {31}, {70001}},
    {{17, 31}, {0, 3}, {17, 3}},
    {{17, 31}, {1, 0}, {3, 31}},
    {{0, 31}, {0, 3}, {0, 17}},
    {{5, 33, 17}, {1, 2, 3}, {3, 31, 1}},
    {{3, 2, 3, 4, 5}, {1, 0, 1, 0, 1}, {1, 2, 2, 4, 3}},
    {{2, 3, 2, 3, 2, 17}, {1, 0, 0, 1, 0, 3}, {1, 3, 2, 2, 1, 3}},
    {{5, 6, 7, 8}, {1, 2, 3, 4}, {3, 3, 3, 3}},
    {{5, 6, 7, 8}, {0, 1, 0, 0}, {5, 1, 7, 8}},
    {{5, 6, 7, 8}, {0, 0, 2, 2}, {5, 6, 3, 5}},
    {{3, 33, 17, 31}, {1, 16, 0, 0}, {2, 17, 17, 31}},
    {{31, 3, 33, 33}, {0, 0, 1, 1}, {31, 3, 31, 31}},
    {{31, 3, 33, 33}, {30, 2, 32, 32}, {1, 1, 1, 1}},
    {{4, 3, 8, 9}, {2, 3, 0, 0}, {2, 0, 8, 9}},
    {{1, 1, 120, 130}, {0, 0, 3, 0}, {1, 1, 100, 127}},
};

TEST(SliceAndPad, AgreeWithLoopsInAllDTypes) {
  KernelCheck check(1);
  for (const Box& box : kBoxes) {
    for (const DType dtype : kDTypes) check_slice_and_pad(numbered({box.all, dtype}), box.begin, box.extents);
  }
}

TEST(SliceAndPad, AgreeWithLoopsInAllLayouts) {
  KernelCheck check(1);
  for (const Box& box : kBoxes) {
    if (box.all.rank() != 4) continue;
    for (const Layout layout : {Layout::kNhwc, Layout::kChwn}) {
      for (const DType dtype : {DType::kF32, DType::kU8})
        check_slice_and_pad(numbered({box.all, dtype, layout}), box.begin, box.extents);
    }
  }
}

TEST(SliceAndPad, AgreeWithLoopsOnLargeTensors) {
  const int64_t n = pieces_past_caches(33 * 32 * 61 * 8), length = pieces_past_caches(4) + 17;
  for (const Layout layout : kPublicLayouts) {
    check_slice_and_pad(numbered({Shape{n, 33, 36, 67}, DType::kF64, layout}), {0, 0, 2, 3}, {n, 33, 32, 61});
    check_slice_and_pad(numbered({Shape{n, 33, 36, 67}, DType::kF64, layout}), {1, 1, 0, 0}, {n - 1, 31, 36, 67});
  }
  check_slice_and_pad(numbered({Shape{length + 99999}, DType::kF32}), {3}, {length});
}

TEST(Slice, AllOfATensorIsTheTensor) {
  const Tensor x = numbered({Shape{3, 4}, DType::kF32});
  EXPECT_EQ(slice(x, {0, 0}, {3, 4}).value.get(), x.value.get());
  EXPECT_EQ(pad(x, {0, 0}, {3, 4}, 1).value.get(), x.value.get());
  const Tensor image = numbered({Shape{1, 2, 3, 4}, DType::kF32});
  EXPECT_EQ(pad2d(image, {0, 0, 0, 0}, 7).value.get(), image.value.get());
}

TEST(Pad2d, AgreesWithLoops) {
  KernelCheck check(1);
  for (const Layout layout : kPublicLayouts) {
    for (const Shape& shape : {Shape{3, 5, 7, 9}, Shape{17, 3, 31, 33}, Shape{2, 1, 0, 3}, Shape{33, 17, 1, 1}}) {
      for (const auto& padding :
           std::vector<Sides<int64_t>>{{1, 1, 1, 1}, {2, 0, 0, 3}, {0, 1, 0, 0}, {0, 0, 4, 0}, {4, 4, 4, 4}}) {
        const Tensor x = numbered({shape, DType::kF32, layout});
        const std::vector<double> elements = to_doubles(x);
        const Tensor y = pad2d(x, padding, -1.5);
        ASSERT_EQ(y.spec(), TensorSpec(Shape{shape[0], shape[1], shape[2] + padding[0] + padding[1],
                                             shape[3] + padding[2] + padding[3]},
                                       DType::kF32, layout));
        const auto source = [&](const Index& i) {
          const Index from{i[0], i[1], i[2] - padding[0], i[3] - padding[2]};
          const bool inside = from[2] >= 0 && from[2] < shape[2] && from[3] >= 0 && from[3] < shape[3];
          return inside ? elements[static_cast<size_t>(position(shape, from))] : -1.5;
        };
        EXPECT_EQ(to_doubles(y), expected(y.shape(), source)) << to_string(x.spec());
      }
    }
  }
}

TEST(Pad2d, TwoNumbersAreHeightAndWidth) {
  EXPECT_EQ(pad2d(numbered({Shape{1, 1, 2, 2}, DType::kF32}), {1, 3}).shape(), Shape({1, 1, 4, 8}));
  EXPECT_EQ(pad2d(numbered({Shape{1, 1, 2, 2}, DType::kF32}), 1).shape(), Shape({1, 1, 4, 4}));
}

}  // namespace
}  // namespace plumb::test
