// index_select and index_add against plain loops over indices.
#include "ops/index_select.h"

#include "core/random.h"
#include "kernels/threads.h"
#include "ops/grad.h"
#include "tests/ops/movement.h"

namespace plumb::test {
namespace {

Tensor index_of(int64_t n, int64_t slices, uint64_t seed = 5) {
  Tensor t = Tensor::empty(TensorSpec(Shape{n}, DType::kI64));
  detail::fill_uniform(t.value->data, DType::kI64, n, 0, static_cast<double>(slices - 1), seed);
  return t;
}

void check_select(const Tensor& x, int dim, const Tensor& index) {
  const std::vector<double> elements = to_doubles(x);

  const Tensor y = index_select(x, dim, index);

  ASSERT_EQ(y.spec(), x.spec().with(x.shape().with(dim, index.numel())));
  const auto source = [&](Index i) {
    int64_t& k = i[static_cast<size_t>(dim)];
    k = index.data<int64_t>()[static_cast<size_t>(k)];
    return elements[static_cast<size_t>(position(x.shape(), i))];
  };
  EXPECT_EQ(to_doubles(y), expected(y.shape(), source)) << to_string(x.spec()) << " along " << dim;
}

void check_add(const Tensor& x, int dim, const Tensor& index, int64_t slices) {
  const std::vector<double> elements = to_doubles(x);

  const Tensor y = index_add(x, dim, index, slices);

  ASSERT_EQ(y.spec(), x.spec().with(x.shape().with(dim, slices)));
  std::vector<double> sums(static_cast<size_t>(y.numel()));
  expected(x.shape(), [&](Index i) {
    const double element = elements[static_cast<size_t>(position(x.shape(), i))];
    int64_t& k = i[static_cast<size_t>(dim)];
    k = index.data<int64_t>()[static_cast<size_t>(k)];
    sums[static_cast<size_t>(position(y.shape(), i))] += element;
    return 0;
  });
  EXPECT_EQ(to_doubles(y), sums) << to_string(x.spec()) << " along " << dim;
}

const Shape kShapes[] = {{1025}, {33, 5}, {5, 33}, {3, 2, 1030}, {2, 3, 2, 3, 2, 17}, {3, 17, 5, 7}, {7, 3, 11, 33}};

TEST(IndexSelect, AgreesWithLoopsInAllDTypesAndLayouts) {
  KernelCheck check(1);
  for (const Shape& shape : kShapes) {
    for (const Layout layout : kPublicLayouts) {
      if (layout != Layout::kNchw && shape.rank() != 4) continue;
      for (const DType dtype : kDTypes) {
        for (int dim = 0; dim < shape.rank(); ++dim)
          check_select(numbered({shape, dtype, layout}), dim, index_of(shape[dim] / 2 + 1, shape[dim]));
      }
    }
  }
  EXPECT_TRUE(check.checked().contains("index_select:runs"));
}

TEST(IndexSelect, AgreesWithLoopsOnLargeTensors) {
  const int64_t n = pieces_past_caches(1030 * 8);
  check_select(numbered({Shape{3, 1030}, DType::kF64}), 0, index_of(n, 3));
  check_select(numbered({Shape{3, 1030, 2}, DType::kI32}), 0, index_of(n, 3));
  check_select(numbered({Shape{5, 1031}, DType::kU8}), 1, index_of(n * 1030, 1031));
}

// The sums stay below 256, so that bf16 holds each.
TEST(IndexAdd, AgreesWithLoopsInAllLayouts) {
  KernelCheck check(1);
  for (const Shape& shape : kShapes) {
    for (const Layout layout : kPublicLayouts) {
      if (layout != Layout::kNchw && shape.rank() != 4) continue;
      for (const DType dtype : {DType::kF32, DType::kF64, DType::kBf16}) {
        for (int dim = 0; dim < shape.rank(); ++dim) {
          for (const int64_t slices : {int64_t{1}, shape[dim], 2 * shape[dim] + 1}) {
            if (shape[dim] > 64 && slices == 1) continue;
            check_add(small_integers({shape, dtype, layout}, 3), dim, index_of(shape[dim], slices), slices);
          }
        }
      }
    }
  }
  EXPECT_TRUE(check.checked().contains("index_add:rows"));
  EXPECT_TRUE(check.checked().contains("index_add:lists") || threads() == 1);
}

TEST(IndexAdd, AgreesWithLoopsOnLargeTensors) {
  const int64_t slices = pieces_past_caches(30 * 8);
  check_add(small_integers({Shape{slices / 2, 30}, DType::kF64}, 3), 0, index_of(slices / 2, slices), slices);
}

TEST(IndexAdd, SumsOfBf16AreRoundedOnce) {
  const Tensor x = Tensor::from({256.0f, 1.0f, 1.0f, 256.0f, 1.0f, 1.0f}, Shape{6, 1});
  const Tensor index = Tensor::from({int64_t{1}, int64_t{1}, int64_t{1}, int64_t{3}, int64_t{3}, int64_t{3}}, Shape{6});
  for (const int64_t width : {1, 3, 9, 300}) {  // a sum that was rounded twice would be 256
    std::vector<double> wide;
    for (const double v : to_doubles(x)) wide.insert(wide.end(), static_cast<size_t>(width), v);

    const Tensor y = index_add(from_doubles(wide, {Shape{6, width}, DType::kBf16}), 0, index, 5);

    const auto source = [](const Index& i) { return i[0] == 1 || i[0] == 3 ? 258.0 : 0.0; };
    EXPECT_EQ(to_doubles(y), expected(y.shape(), source)) << width;
  }
}

TEST(IndexAdd, SumsAreInTheOrderOfTheIndex) {
  const Tensor index = Tensor::from({int64_t{0}, int64_t{0}, int64_t{0}}, Shape{3});
  for (const int64_t width : {1, 3, 9, 300}) {
    std::vector<double> wide;
    for (const double v : {1.0, 1e8, -1e8}) wide.insert(wide.end(), static_cast<size_t>(width), v);

    const Tensor y = index_add(from_doubles(wide, Shape{3, width}), 0, index, 1);

    EXPECT_EQ(to_doubles(y), std::vector<double>(static_cast<size_t>(width), 0.0)) << width;  // 1 if backwards
  }
}

TEST(IndexAdd, DoesNotDependOnTheNumberOfThreads) {
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    const Tensor x = random_tensor({Shape{1003, 129}, dtype}, 1);
    expect_same_with_any_threads([&] {
      return std::vector<Tensor>{index_add(x, 0, index_of(1003, 99), 99), index_add(x, 1, index_of(129, 2000), 2000)};
    });
  }
}

TEST(IndexSelect, RefusesAnIndexOutOfRange) {
  const Tensor x = random_tensor(Shape{100, 20}, 1);
  for (const int64_t bad : {int64_t{-1}, int64_t{100}, int64_t{1} << 40}) {
    Tensor index = index_of(700, 100);
    index.mutable_data<int64_t>()[613] = bad;
    const std::string says =
        message("the index at 613 is {}; with 100 slices an index is at least 0 and less than that", bad);
    EXPECT_TRUE(refused([&] { index_select(x, 0, index); }, "index_select: " + says));
    for (const int64_t width : {1, 20})
      EXPECT_TRUE(refused(
          [&] {
            index_add(random_tensor(Shape{700, width}, 2), 0, index, 100);
          },
          "index_add: " + says));
  }
}

TEST(IndexSelect, AnEmptyTensorHasNoSlices) {
  const Tensor none = Tensor::empty(TensorSpec(Shape{0}, DType::kI64));
  EXPECT_EQ(index_select(random_tensor(Shape{0, 5}, 1), 0, none).shape(), Shape({0, 5}));
  EXPECT_EQ(to_doubles(index_add(random_tensor(Shape{0, 2}, 1), 0, none, 2)), std::vector<double>(4, 0.0));
  EXPECT_TRUE(refused([] { index_select(random_tensor(Shape{0, 5}, 1), 0, index_of(1, 1)); }, "with 0 slices"));
}

}  // namespace
}  // namespace plumb::test
