// Ops that move or convert elements, against plain loops over indices: to, permute, slice, pad, pad2d, concat.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "ops/concat.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "ops/pad2d.h"
#include "ops/permute.h"
#include "ops/slice.h"
#include "tests/support/compare.h"
#include "tests/support/gradcheck.h"
#include "tests/support/kernel_check.h"

namespace plumb {
namespace {

using test::refused;

constexpr DType kDTypes[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBf16, DType::kI32, DType::kI64, DType::kU8};
using Index = std::array<int64_t, kMaxRank>;

Shape shape_of(const std::vector<int64_t>& extents) { return Shape(std::span<const int64_t>(extents)); }

// Element k in row-major order is k, or k modulo what the dtype can tell apart.
Tensor numbered(const TensorSpec& spec) {
  const bool is_narrow = size_of(spec.dtype) <= 2;
  std::vector<double> values(static_cast<size_t>(spec.numel()));
  for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<double>(is_narrow ? k % 251 : k);
  return test::from_doubles(values, spec);
}

int64_t position(const Shape& shape, const Index& index) {
  int64_t at = 0;
  for (int d = 0; d < shape.rank(); ++d) at = at * shape[d] + index[static_cast<size_t>(d)];
  return at;
}

// The elements of a result whose element at an index is source(index), in row-major order.
template <class Source>
std::vector<double> expected(const Shape& shape, const Source& source) {
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  for (size_t k = 0; k < values.size(); ++k) {
    Index index{};
    for (int64_t d = shape.rank() - 1, rest = static_cast<int64_t>(k); d >= 0; --d) {
      index[static_cast<size_t>(d)] = rest % shape[static_cast<int>(d)];
      rest /= shape[static_cast<int>(d)];
    }
    values[k] = source(index);
  }
  return values;
}

// ---- layouts

TEST(ToLayout, KeepsEveryElementBetweenAllLayoutsInAllDTypes) {
  test::KernelCheck check(1);
  const Shape shapes[] = {{0, 3, 4, 5},    {2, 3, 0, 5},    {1, 1, 1, 1},   {17, 3, 5, 7},
                          {3, 17, 31, 1},  {33, 31, 1, 1},  {2, 33, 17, 3}, {31, 2, 33, 17},
                          {3, 130, 3, 43}, {19, 4, 40, 40}, {5, 1, 9, 11},  {1, 65, 8, 8}};
  for (const Shape& shape : shapes) {
    for (const DType dtype : kDTypes) {
      const Tensor plain = numbered({shape, dtype});
      for (const Layout from : kPublicLayouts) {
        const Tensor x = test::converted(plain, dtype, from);
        for (const Layout into : kPublicLayouts) {
          const Tensor y = to(x, into);
          EXPECT_EQ(y.spec(), x.spec().with(into));
          EXPECT_TRUE(test::equal(y, plain)) << to_string(x.spec()) << " to " << to_string(into);
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
      EXPECT_TRUE(test::equal(x, plain)) << to_string(x.spec());
      for (const Tensor& y : in_layout) {
        EXPECT_TRUE(test::bitwise_equal(to(x, y.layout()), y))
            << to_string(x.spec()) << " to " << to_string(y.layout());
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

TEST(ToLayout, Refuses) {
  const Tensor x = numbered({Shape{2, 3}, DType::kF32});
  EXPECT_TRUE(refused([&] { to(x, Layout::kNhwc); }, "to: x has shape (2, 3)"));
  EXPECT_TRUE(refused([&] { to(Tensor(), Layout::kNhwc); }, "to: x is an empty tensor"));
  EXPECT_TRUE(refused([&] { to(Tensor(), DType::kF64); }, "to: x is an empty tensor"));
}

// ---- permutations

void check_permute(const Tensor& x, std::vector<int> dims) {
  std::vector<int64_t> extents;
  for (const int d : dims) extents.push_back(x.shape()[d]);
  const std::vector<double> elements = test::to_doubles(x);

  Tensor y;
  switch (dims.size()) {
    case 1: y = permute(x, {dims[0]}); break;
    case 2: y = permute(x, {dims[0], dims[1]}); break;
    case 3: y = permute(x, {dims[0], dims[1], dims[2]}); break;
    case 4: y = permute(x, {dims[0], dims[1], dims[2], dims[3]}); break;
    case 5: y = permute(x, {dims[0], dims[1], dims[2], dims[3], dims[4]}); break;
    default: y = permute(x, {dims[0], dims[1], dims[2], dims[3], dims[4], dims[5]}); break;
  }

  ASSERT_EQ(y.spec(), x.spec().with(shape_of(extents)));
  const auto source = [&](const Index& i) {
    Index from{};
    for (size_t d = 0; d < dims.size(); ++d) from[static_cast<size_t>(dims[d])] = i[d];
    return elements[static_cast<size_t>(position(x.shape(), from))];
  };
  EXPECT_EQ(test::to_doubles(y), expected(y.shape(), source))
      << to_string(x.spec()) << " by " << testing::PrintToString(dims);
}

TEST(Permute, AgreesWithLoopsForEveryOrder) {
  test::KernelCheck check(1);
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
    for (const int64_t a : {1, 3, 17, 31, 33, 300}) {
      for (const int64_t b : {0, 1, 3, 17, 31, 33, 2100}) {
        check_permute(numbered({Shape{a, b}, dtype}), {1, 0});
        check_permute(numbered({Shape{2, a, b}, dtype}), {2, 0, 1});
      }
    }
  }
}

TEST(Permute, NegativeDimensionsCountFromTheEnd) {
  const Tensor x = numbered({Shape{2, 3, 4}, DType::kF32});
  EXPECT_TRUE(test::equal(permute(x, {-1, 0, -2}), permute(x, {2, 0, 1})));
  EXPECT_EQ(permute(x, {0, -2, 2}).value.get(), x.value.get());
}

TEST(Permute, Refuses) {
  const Tensor x = numbered({Shape{2, 3, 4}, DType::kF32}),
               nhwc = zeros({Shape{1, 2, 3, 4}, DType::kF32, Layout::kNhwc});
  EXPECT_TRUE(refused([&] { permute(x, {0, 1}); }, "permute: 2 dimensions are named"));
  EXPECT_TRUE(refused([&] { permute(x, {0, 1, 3}); }, "permute: dimension 3"));
  EXPECT_TRUE(refused([&] { permute(x, {0, -4, 1}); }, "permute: dimension -4"));
  EXPECT_TRUE(refused([&] { permute(x, {0, 1, -2}); }, "named twice"));
  EXPECT_TRUE(refused([&] { permute(nhwc, {0, 1, 2, 3}); }, "convert it to row-major with to(nchw)"));
  EXPECT_TRUE(refused([&] { permute(Tensor(), {}); }, "permute: x is an empty tensor"));
}

// ---- parts

void check_slice_and_pad(const Tensor& x, const Shape& begin, const Shape& extents) {
  const std::vector<double> elements = test::to_doubles(x);
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
  EXPECT_EQ(test::to_doubles(part), expected(extents, source))
      << to_string(x.spec()) << " " << to_string(begin) << " " << to_string(extents);
  const auto source_or_two = [&](const Index& i) {
    const Index from = shifted(i, -1);
    for (int d = 0; d < x.rank(); ++d) {
      const int64_t k = from[static_cast<size_t>(d)];
      if (k < 0 || k >= extents[d]) return 2.0;
    }
    return elements[static_cast<size_t>(position(x.shape(), i))];
  };
  EXPECT_EQ(test::to_doubles(padded), expected(x.shape(), source_or_two))
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
  test::KernelCheck check(1);
  for (const Box& box : kBoxes) {
    for (const DType dtype : kDTypes) check_slice_and_pad(numbered({box.all, dtype}), box.begin, box.extents);
  }
}

TEST(SliceAndPad, AgreeWithLoopsInAllLayouts) {
  test::KernelCheck check(1);
  for (const Box& box : kBoxes) {
    if (box.all.rank() != 4) continue;
    for (const Layout layout : {Layout::kNhwc, Layout::kChwn}) {
      for (const DType dtype : {DType::kF32, DType::kU8})
        check_slice_and_pad(numbered({box.all, dtype, layout}), box.begin, box.extents);
    }
  }
}

TEST(SliceAndPad, AgreeWithLoopsOnLargeTensors) {
  for (const Layout layout : kPublicLayouts) {
    check_slice_and_pad(numbered({Shape{37, 33, 36, 67}, DType::kF64, layout}), {0, 0, 2, 3}, {37, 33, 32, 61});
    check_slice_and_pad(numbered({Shape{37, 33, 36, 67}, DType::kF64, layout}), {1, 1, 0, 0}, {36, 31, 36, 67});
  }
  check_slice_and_pad(numbered({Shape{5000000}, DType::kF32}), {3}, {4900001});
}

TEST(Slice, AllOfATensorIsTheTensor) {
  const Tensor x = numbered({Shape{3, 4}, DType::kF32});
  EXPECT_EQ(slice(x, {0, 0}, {3, 4}).value.get(), x.value.get());
  EXPECT_EQ(pad(x, {0, 0}, {3, 4}, 1).value.get(), x.value.get());
}

TEST(Slice, Refuses) {
  const Tensor x = numbered({Shape{3, 4}, DType::kF32});
  EXPECT_TRUE(refused(
      [&] {
        slice(x, {0, 2}, {3, 3});
      },
      "slice: a part of shape (3, 3) that starts at (0, 2) does not lie within (3, 4)"));
  EXPECT_TRUE(refused([&] { slice(x, {0, int64_t{1} << 55}, {3, 1}); }, "slice: "));
  EXPECT_TRUE(refused([&] { slice(x, {0}, {3}); }, "slice: "));
  EXPECT_TRUE(refused([&] { slice(Tensor(), {}, {}); }, "slice: x is an empty tensor"));
  EXPECT_TRUE(refused([&] { pad(x, {1, 0}, {3, 9}); }, "pad: a part of shape (3, 4)"));
}

// ---- borders

TEST(Pad2d, AgreesWithLoops) {
  test::KernelCheck check(1);
  for (const Layout layout : kPublicLayouts) {
    for (const Shape& shape : {Shape{3, 5, 7, 9}, Shape{17, 3, 31, 33}, Shape{2, 1, 0, 3}, Shape{33, 17, 1, 1}}) {
      for (const auto& padding :
           std::vector<std::array<int64_t, 4>>{{1, 1, 1, 1}, {2, 0, 0, 3}, {0, 1, 0, 0}, {0, 0, 4, 0}, {4, 4, 4, 4}}) {
        const Tensor x = numbered({shape, DType::kF32, layout});
        const std::vector<double> elements = test::to_doubles(x);
        const Tensor y = pad2d(x, padding, -1.5);
        ASSERT_EQ(y.spec(), TensorSpec(Shape{shape[0], shape[1], shape[2] + padding[0] + padding[1],
                                             shape[3] + padding[2] + padding[3]},
                                       DType::kF32, layout));
        const auto source = [&](const Index& i) {
          const Index from{i[0], i[1], i[2] - padding[0], i[3] - padding[2]};
          const bool inside = from[2] >= 0 && from[2] < shape[2] && from[3] >= 0 && from[3] < shape[3];
          return inside ? elements[static_cast<size_t>(position(shape, from))] : -1.5;
        };
        EXPECT_EQ(test::to_doubles(y), expected(y.shape(), source)) << to_string(x.spec());
      }
    }
  }
}

TEST(Pad2d, Refuses) {
  const Tensor x = zeros({Shape{1, 2, 3, 4}, DType::kF32});
  EXPECT_TRUE(refused([&] { pad2d(x, {0, -1, 0, 0}); }, "pad2d: a padding is -1"));
  EXPECT_TRUE(refused([&] { pad2d(zeros({Shape{3, 4}, DType::kF32}), {1, 1, 1, 1}); }, "pad2d: x is f32 (3, 4)"));
  EXPECT_TRUE(refused([&] { pad2d(Tensor(), {1, 1, 1, 1}); }, "pad2d: x is an empty tensor"));
  EXPECT_EQ(pad2d(x, {0, 0, 0, 0}, 7).value.get(), x.value.get());
}

// ---- joining

void check_concat(const Shape& shape, int dim, const std::vector<int64_t>& extents, DType dtype, Layout layout) {
  std::vector<Tensor> parts;
  std::vector<std::vector<double>> elements;
  double offset = 0;
  for (const int64_t e : extents) {
    const TensorSpec spec(shape.with(dim, e), dtype, layout);
    std::vector<double> values(static_cast<size_t>(spec.numel()));
    for (double& v : values) v = std::fmod(offset++, 251);
    parts.push_back(test::from_doubles(values, spec));
    elements.push_back(values);
  }
  const Tensor y = concat(parts, dim - shape.rank());

  ASSERT_EQ(y.spec(),
            TensorSpec(shape.with(dim, std::accumulate(extents.begin(), extents.end(), int64_t{0})), dtype, layout));
  const auto source = [&](Index i) {
    size_t part = 0;
    int64_t& k = i[static_cast<size_t>(dim)];
    while (k >= extents[part]) k -= extents[part++];
    return elements[part][static_cast<size_t>(position(parts[part].shape(), i))];
  };
  EXPECT_EQ(test::to_doubles(y), expected(y.shape(), source)) << to_string(y.spec()) << " along " << dim;
}

TEST(Concat, AgreesWithLoops) {
  test::KernelCheck check(1);
  for (const DType dtype : kDTypes) {
    check_concat({1}, 0, {3, 0, 17, 31}, dtype, Layout::kNchw);
    for (int dim = 0; dim < 3; ++dim) check_concat({5, 33, 3}, dim, {1, 17, 2}, dtype, Layout::kNchw);
    for (int dim = 0; dim < 6; ++dim) check_concat({2, 1, 3, 2, 2, 3}, dim, {2, 3}, dtype, Layout::kNchw);
  }
  for (const Layout layout : kPublicLayouts) {
    for (int dim = 0; dim < 4; ++dim) {
      check_concat({3, 17, 5, 7}, dim, {1, 31, 3, 0, 33}, DType::kF32, layout);
      check_concat({3, 17, 5, 7}, dim, {0, 0}, DType::kF32, layout);
    }
  }
}

TEST(Concat, AgreesWithLoopsOnLargeTensors) {
  check_concat({31, 3, 71, 34}, 1, {40, 9, 30}, DType::kF32, Layout::kNchw);
  check_concat({31, 3, 71, 34}, 1, {40, 9, 30}, DType::kF32, Layout::kNhwc);
  check_concat({3, 33, 71, 34}, 0, {40, 9, 30}, DType::kF32, Layout::kChwn);
}

TEST(Concat, OfOneTensorIsTheTensor) {
  const Tensor x = numbered({Shape{3, 4}, DType::kF32});
  EXPECT_EQ(concat({x}, 1).value.get(), x.value.get());
}

TEST(Concat, Refuses) {
  const Tensor x = zeros({Shape{2, 3, 4, 5}, DType::kF32});
  EXPECT_TRUE(refused([&] { concat({}, 0); }, "concat: the list of tensors is empty"));
  EXPECT_TRUE(refused([&] { concat({x, Tensor()}, 0); }, "concat: one of 2 tensors is empty"));
  EXPECT_TRUE(refused([&] { concat({x, x}, 4); }, "concat: dimension 4"));
  EXPECT_TRUE(refused([&] { concat({x, x}, -5); }, "concat: dimension -1"));
  EXPECT_TRUE(refused([&] { concat({x, to(x, DType::kF64)}, 0); }, "concat: tensors are f32"));
  EXPECT_TRUE(refused([&] { concat({x, to(x, Layout::kNhwc)}, 0); }, "concat: tensors are f32"));
  EXPECT_TRUE(refused([&] { concat({x, zeros({Shape{2, 3, 4, 6}, DType::kF32})}, 0); }, "concat: tensors have shapes"));
  EXPECT_TRUE(refused([&] { concat({x, zeros({Shape{2, 3, 4}, DType::kF32})}, 0); }, "concat: tensors have shapes"));
}

// ---- gradients

Tensor leaf(const TensorSpec& spec, uint64_t seed) { return test::random_tensor(spec, seed).require_grad(); }

TEST(Movement, GradientsAreThoseOfDifferences) {
  using Span = std::span<const Tensor>;
  const std::pair<const char*, test::Function> cases[] = {
      {"to", [](Span x) { return to(square(to(square(x[0]), Layout::kNhwc)), Layout::kChwn); }},
      {"permute",
       [](Span x) {
         return square(permute(square(x[0]), {2, 0, 3, 1}));
       }},
      {"slice",
       [](Span x) {
         return square(slice(square(x[0]), {0, 1, 2, 0}, {2, 2, 1, 5}));
       }},
      {"pad",
       [](Span x) {
         return square(pad(square(x[0]), {0, 1, 2, 0}, {2, 5, 7, 6}, 3));
       }},
      {"pad2d",
       [](Span x) {
         return square(pad2d(square(x[0]), {1, 2, 0, 1}, 2));
       }},
      {"concat",
       [](Span x) {
         return square(concat({square(x[0]), x[1], square(x[0])}, 1));
       }},
  };
  const Tensor inputs[] = {leaf({Shape{2, 3, 4, 5}, DType::kF64}, 1), leaf({Shape{2, 1, 4, 5}, DType::kF64}, 2)};
  for (const auto& [name, f] : cases) {
    const Span used(inputs, name == std::string("concat") ? 2 : 1);
    EXPECT_TRUE(test::gradcheck(f, used)) << name;
    EXPECT_TRUE(test::gradgradcheck(f, used)) << name;
  }
}

TEST(Movement, GradientsComeInTheSpecOfTheInput) {
  const TensorSpec spec(Shape{3, 5, 4, 2}, DType::kF32, Layout::kNhwc);
  const Tensor x = leaf(spec, 1);
  const auto gradient = [&](const Tensor& y) {
    const Tensor dy = test::small_integers(y.spec(), 2);
    return std::pair(grad(y, {x}, dy)[0], dy);
  };

  const auto [by_layout, dy_layout] = gradient(to(x, Layout::kChwn));
  EXPECT_EQ(by_layout.spec(), spec);
  EXPECT_TRUE(test::equal(by_layout, dy_layout));
  const auto [by_dtype, dy_dtype] = gradient(to(x, DType::kBf16));
  EXPECT_EQ(by_dtype.spec(), spec);
  EXPECT_EQ(test::to_doubles(by_dtype), test::to_doubles(dy_dtype));
  const auto [by_slice, dy_slice] = gradient(slice(x, {0, 2, 1, 0}, {3, 3, 2, 2}));
  EXPECT_TRUE(test::equal(by_slice, pad(dy_slice, {0, 2, 1, 0}, {3, 5, 4, 2})));
  const auto [by_border, dy_border] = gradient(pad2d(x, {1, 0, 2, 0}));
  EXPECT_TRUE(test::equal(by_border, slice(dy_border, {0, 0, 1, 2}, {3, 5, 4, 2})));
  EXPECT_FALSE(to(x, DType::kI32).requires_grad());
}

TEST(Concat, GradientsAreSlicesForThoseThatNeedOne) {
  const TensorSpec spec(Shape{2, 3}, DType::kF32);
  const Tensor a = leaf(spec, 1), b = test::random_tensor(spec, 2), c = leaf(spec, 3);
  const Tensor y = concat({a, b, c, a}, 1);
  const Tensor dy = numbered(y.spec());

  const TensorList g = grad(y, {a, c}, dy, {.retain_graph = true});
  EXPECT_TRUE(test::equal(g[0], slice(dy, {0, 0}, {2, 3}) + slice(dy, {0, 9}, {2, 3})));
  EXPECT_TRUE(test::equal(g[1], slice(dy, {0, 6}, {2, 3})));

  grad(y, {a}, dy);
  EXPECT_TRUE(refused([&] { grad(y, {a}, dy); }, "ran through this graph before"));
  EXPECT_FALSE(concat({b, b}, 0).requires_grad());
  const NoGrad off;
  EXPECT_FALSE(concat({a, a}, 0).requires_grad());
}

TEST(Concat, OfManyTensorsIsOneKernel) {
  std::vector<Tensor> parts;
  for (uint64_t i = 0; i < 40; ++i) parts.push_back(leaf({Shape{2, 3, 4, 5}, DType::kF32, Layout::kNhwc}, i));
  test::KernelLog log;
  const Tensor y = concat(parts, 1);
  EXPECT_EQ(log.ran.size(), 1u);
  const TensorList g = grad(y, parts, y.detached());
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_TRUE(test::bitwise_equal(g[i], parts[i].detached())) << i;
}

}  // namespace
}  // namespace plumb
