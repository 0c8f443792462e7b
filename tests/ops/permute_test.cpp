// to(layout) and permute against plain loops over indices.
#include <algorithm>
#include <numeric>

#include "ops/convert.h"
#include "ops/permute.h"
#include "tests/ops/movement.h"

namespace plumb::test {
namespace {

Shape shape_of(const std::vector<int64_t>& extents) { return Shape(std::span<const int64_t>(extents)); }

TEST(ToLayout, KeepsEveryElementBetweenAllLayoutsInAllDTypes) {
  KernelCheck check(1);
  const Shape shapes[] = {{0, 3, 4, 5},    {2, 3, 0, 5},    {1, 1, 1, 1},   {17, 3, 5, 7},
                          {3, 17, 31, 1},  {33, 31, 1, 1},  {2, 33, 17, 3}, {31, 2, 33, 17},
                          {3, 130, 3, 43}, {19, 4, 40, 40}, {5, 1, 9, 11},  {1, 65, 8, 8}};
  for (const Shape& shape : shapes) {
    for (const DType dtype : kDTypes) {
      const Tensor plain = numbered({shape, dtype});
      for (const Layout from : kPublicLayouts) {
        const Tensor x = converted(plain, dtype, from);
        for (const Layout into : kPublicLayouts) {
          const Tensor y = to(x, into);
          EXPECT_EQ(y.spec(), x.spec().with(into));
          EXPECT_TRUE(equal(y, plain)) << to_string(x.spec()) << " to " << to_string(into);
        }
      }
    }
  }
}

// From a few megabytes on results are streamed past the caches; matrices are thin where there are few channels.
TEST(ToLayout, KeepsEveryElementOfLargeTensors) {
  const TensorSpec specs[] = {{Shape{41, 33, 40, 37}, DType::kF32},  {Shape{250, 64, 16, 17}, DType::kU8},
                              {Shape{9, 260, 33, 31}, DType::kBf16}, {Shape{130, 3, 111, 113}, DType::kF32},
                              {Shape{257, 2, 63, 65}, DType::kF64},  {Shape{2, 3, 901, 903}, DType::kF32}};
  for (const TensorSpec& spec : specs) {
    const Tensor plain = numbered(spec);
    const Tensor in_layout[] = {plain, to(plain, Layout::kNhwc), to(plain, Layout::kChwn)};
    for (const Tensor& x : in_layout) {
      EXPECT_TRUE(equal(x, plain)) << to_string(x.spec());
      for (const Tensor& y : in_layout) {
        EXPECT_TRUE(bitwise_equal(to(x, y.layout()), y)) << to_string(x.spec()) << " to " << to_string(y.layout());
      }
    }
  }
}

TEST(ToLayout, MovesNothingWhereTheOrderIsTheSame) {
  const Tensor x = numbered({Shape{5, 7, 1, 1}, DType::kF32});
  EXPECT_EQ(to(x, Layout::kNchw).value.get(), x.value.get());
  EXPECT_EQ(to(x, Layout::kNhwc).value->data, x.value->data);
  EXPECT_NE(to(x, Layout::kChwn).value->data, x.value->data);
  const Tensor images = numbered({Shape{1, 1, 4, 5}, DType::kF32});
  for (const Layout l : kPublicLayouts) EXPECT_EQ(to(images, l).value->data, images.value->data);
}

void check_permute(const Tensor& x, const std::vector<int>& dims) {
  std::vector<int64_t> extents;
  for (const int d : dims) extents.push_back(x.shape()[d]);
  const std::vector<double> elements = to_doubles(x);

  const Tensor y = permute(x, dims);

  ASSERT_EQ(y.spec(), x.spec().with(shape_of(extents)));
  const auto source = [&](const Index& i) {
    Index from{};
    for (size_t d = 0; d < dims.size(); ++d) from[static_cast<size_t>(dims[d])] = i[d];
    return elements[static_cast<size_t>(position(x.shape(), from))];
  };
  EXPECT_EQ(to_doubles(y), expected(y.shape(), source))
      << to_string(x.spec()) << " by " << testing::PrintToString(dims);
}

TEST(Permute, AgreesWithLoopsForEveryOrder) {
  KernelCheck check(1);
  const Shape shapes[] = {{17},
                          {33, 31},
                          {3, 70},
                          {1, 9},
                          {5, 17, 33},
                          {33, 3, 17},
                          {2, 65, 3},
                          {31, 0, 3},
                          {20, 3, 5},
                          {3, 5, 17, 9},
                          {2, 33, 4, 17},
                          {17, 1, 33, 2},
                          {3, 7, 15, 15},
                          {2, 6, 40, 8},
                          {2, 3, 4, 5, 6},
                          {3, 2, 17, 1, 18},
                          {2, 3, 1, 2, 3, 17}};
  for (const Shape& shape : shapes) {
    const Tensor x = numbered({shape, DType::kI32});
    std::vector<int> dims(static_cast<size_t>(shape.rank()));
    std::iota(dims.begin(), dims.end(), 0);
    do check_permute(x, dims);
    while (std::next_permutation(dims.begin(), dims.end()));
  }
}

TEST(Permute, AgreesWithLoopsInAllDTypesAndSizes) {
  for (const DType dtype : kDTypes) {
    for (const int64_t a : {1, 3, 5, 9, 15, 17, 31, 33, 300}) {
      for (const int64_t b : {0, 1, 3, 7, 8, 15, 17, 31, 33, 2100}) {
        check_permute(numbered({Shape{a, b}, dtype}), {1, 0});
        check_permute(numbered({Shape{2, a, b}, dtype}), {2, 0, 1});
        check_permute(numbered({Shape{7, a, b}, dtype}), {0, 2, 1});
      }
    }
  }
}

// Matrices of fewer rows than a tile's, in results that are streamed past the caches.
TEST(Permute, AgreesWithLoopsForManySmallMatrices) {
  for (const DType dtype : kDTypes) {
    const int64_t n = pieces_past_caches(15 * 13 * static_cast<int64_t>(size_of(dtype)));
    check_permute(numbered({Shape{n + 3, 15, 13}, dtype}), {0, 2, 1});
  }
}

TEST(Permute, NegativeDimensionsCountFromTheEnd) {
  const Tensor x = numbered({Shape{2, 3, 4}, DType::kF32});
  EXPECT_TRUE(equal(permute(x, {-1, 0, -2}), permute(x, {2, 0, 1})));
  EXPECT_EQ(permute(x, {0, -2, 2}).value.get(), x.value.get());
}

TEST(Permute, MovesNothingWhereTheOrderIsTheSame) {
  const Tensor x = numbered({Shape{1, 2, 1, 3}, DType::kF32});
  for (const Dims& dims : {Dims{1, 0, 2, 3}, Dims{1, 3, 0, 2}, Dims{0, 2, 1, 3}}) {
    EXPECT_EQ(permute(x, dims).value->data, x.value->data);
  }
  EXPECT_NE(permute(x, {0, 3, 1, 2}).value->data, x.value->data);
}

}  // namespace
}  // namespace plumb::test
