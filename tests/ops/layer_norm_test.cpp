#include "ops/layer_norm.h"

#include <cmath>
#include <limits>

#include "ops/grad.h"
#include "ops/reduce.h"
#include "tests/support/compare.h"
#include "tests/support/gradcheck.h"
#include "tests/support/kernel_check.h"

namespace plumb::test {
namespace {

/// x, and parameters of its last dimensions.
struct Inputs {
  Tensor x, w, b;
  explicit Inputs(const TensorSpec& s, int dims = 1, double low = -1, double high = 1) {
    const TensorSpec of_row(Shape(s.shape.extents().subspan(static_cast<size_t>(s.shape.rank() - dims))),
                            s.dtype == DType::kF64 ? DType::kF64 : DType::kF32);
    x = random_tensor(s, 1, low, high);
    w = random_tensor(of_row, 2, 0.5, 1.5);
    b = random_tensor(of_row, 3);
  }
};

/// y by the definition, in double and in logical order.
std::vector<double> expected_of(const Inputs& in, double epsilon = 1e-5) {
  std::vector<double> y = to_doubles(in.x);
  const std::vector<double> w = to_doubles(in.w), b = to_doubles(in.b);
  for (size_t first = 0; first < y.size(); first += w.size()) {
    const auto n = static_cast<double>(w.size());
    double mean = 0, var = 0;
    for (size_t k = 0; k < w.size(); ++k) mean += y[first + k] / n;
    for (size_t k = 0; k < w.size(); ++k) var += (y[first + k] - mean) * (y[first + k] - mean) / n;
    for (size_t k = 0; k < w.size(); ++k) y[first + k] = (y[first + k] - mean) / std::sqrt(var + epsilon) * w[k] + b[k];
  }
  return y;
}

/// Short rows and long ones, whole vectors and odd ends, and more than is added up at once.
const std::vector<Shape> kShapes = {{17},      {3, 5},    {33, 31},  {5, 256},     {130, 768},
                                    {257, 33}, {2, 5000}, {9, 4096}, {2, 3, 1025}, {2, 3, 5, 2, 1, 7}};

// y = x_hat w + b of two rows, worked out by hand: means 2 and 0, deviations sqrt(2/3) and 2.
TEST(LayerNorm, IsWhatOneWorksOutByHand) {
  const double values[] = {1, 2, 3, 0, -2, 2};
  const Tensor x = from_doubles(values, TensorSpec(Shape{2, 3}, DType::kF64));
  const double spread = std::sqrt(2.0 / 3), wide = std::sqrt(8.0 / 3);
  const double ws[] = {2, 3, 4}, bs[] = {10, 20, 30};
  const TensorSpec three(Shape{3}, DType::kF64);

  const Tensor plain = layer_norm(x, 1, 0), both = layer_norm(x, from_doubles(ws, three), from_doubles(bs, three), 0),
               only_b = layer_norm(x, Tensor(), from_doubles(bs, three), 0), of_all = layer_norm(x, 2, 0);

  EXPECT_TRUE(close(to_doubles(plain), std::vector<double>{-1 / spread, 0, 1 / spread, 0, -2 / wide, 2 / wide}, 1e-14));
  EXPECT_TRUE(close(to_doubles(both),
                    std::vector<double>{10 - 2 / spread, 20, 30 + 4 / spread, 10, 20 - 6 / wide, 30 + 8 / wide},
                    1e-14));
  EXPECT_TRUE(close(to_doubles(only_b),
                    std::vector<double>{10 - 1 / spread, 20, 30 + 1 / spread, 10, 20 - 2 / wide, 30 + 2 / wide},
                    1e-14));
  const double mean = 1, all = std::sqrt(16.0 / 6);
  EXPECT_TRUE(
      close(to_doubles(of_all), std::vector<double>{0, (2 - mean) / all, 2 / all, -1 / all, -3 / all, 1 / all}, 1e-14));
}

TEST(LayerNorm, MatchesItsDefinition) {
  for_each_spec(kShapes, {DType::kF64, DType::kF32, DType::kBf16}, [&](const TensorSpec& s) {
    const Inputs in(s);

    const Tensor y = layer_norm(in.x, in.w, in.b);

    EXPECT_EQ(y.spec(), s);
    EXPECT_TRUE(close(to_doubles(y), expected_of(in), 4 * unit_roundoff(s.dtype) + 64 * unit_roundoff(in.w.dtype())));
  });
}

TEST(LayerNorm, KernelsMatchF64AndStayInTheirMemory) {
  KernelCheck check(16);
  for_each_spec(kShapes, {DType::kF32, DType::kBf16}, [&](const TensorSpec& s) {
    for (const int wanted : {1, 2, 3}) {  // dx, dw and db, or all
      Inputs in(s, 1, 0, 2);
      TensorList leaves;
      if (wanted & 1) leaves.push_back(in.x.require_grad());
      if (wanted & 2) leaves.push_back(in.w.require_grad()), leaves.push_back(in.b.require_grad());
      grad(layer_norm(in.x, in.w, in.b), leaves, random_tensor(s, 7));
    }
  });
  EXPECT_EQ(check.checked(), (std::set<std::string>{"layer_norm_backward:loop", "layer_norm_backward:onednn",
                                                    "layer_norm_backward:reference", "layer_norm_forward:loop",
                                                    "layer_norm_forward:onednn", "layer_norm_forward:reference"}));
}

// Large enough to be written past the caches.
TEST(LayerNorm, LargeResultsMatchTheReference) {
  const KernelCheck check(16);
  for (const int64_t columns : {1033, 3000}) {
    Inputs in({{pieces_past_caches(columns * 4), columns}, DType::kF32}, 1, 0, 2);
    const Tensor leaves[3] = {in.x.require_grad(), in.w.require_grad(), in.b.require_grad()};
    const Tensor y = layer_norm(in.x, in.w, in.b);
    grad(y, leaves, random_tensor(y.spec(), 7));
  }
}

TEST(LayerNorm, ARecordedBackwardGivesTheSameGradients) {
  for_each_spec(kShapes, {DType::kF32, DType::kBf16}, [&](const TensorSpec& s) {
    Inputs in(s);
    const Tensor wanted[3] = {in.x.require_grad(), in.w.require_grad(), in.b.require_grad()};
    const Tensor dy = random_tensor(s, 9), y = layer_norm(in.x, in.w, in.b);

    const TensorList fused = grad(y, wanted, dy, {.retain_graph = true});
    const TensorList recorded = grad(y, wanted, dy, {.create_graph = true});

    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(recorded[i].spec(), fused[i].spec());
      EXPECT_TRUE(close(recorded[i], fused[i], 8 * unit_roundoff(fused[i].dtype()) + 1e-5)) << i;
    }
  });
}

TEST(LayerNorm, GradientsOfSomeInputsAreThoseOfAll) {
  const Inputs in({{37, 65}, DType::kF32});
  const Tensor dy = random_tensor(in.x.spec(), 9);
  const Tensor x = in.x.detached().require_grad(), w = in.w.detached().require_grad(),
               b = in.b.detached().require_grad();
  const Tensor three[3] = {x, w, b};

  const TensorList all = grad(layer_norm(x, w, b), three, dy);

  EXPECT_TRUE(bitwise_equal(grad(layer_norm(x, in.w, in.b), {x}, dy)[0], all[0]));
  EXPECT_TRUE(bitwise_equal(grad(layer_norm(in.x, w, in.b), {w}, dy)[0], all[1]));
  EXPECT_TRUE(bitwise_equal(grad(layer_norm(in.x, in.w, b), {b}, dy)[0], all[2]));
  EXPECT_TRUE(bitwise_equal(grad(layer_norm(in.x, Tensor(), b), {b}, dy)[0], all[2]));
}

TEST(LayerNorm, KeepsItsDigitsWhereTheMeanIsLarge) {
  for_each_spec(kShapes, {DType::kF32}, [&](const TensorSpec& s) {
    const Inputs in(s, 1, 1e4 - 1, 1e4 + 1);

    EXPECT_TRUE(close(to_doubles(layer_norm(in.x, in.w, in.b)), expected_of(in), 4e-6));
  });
}

TEST(LayerNorm, KeepsItsDigitsWhereTheFirstElementIsFarOff) {
  for (const int64_t columns : {100, 1025}) {
    Inputs in({{5, columns}, DType::kF32}, 1, 99, 101);
    std::vector<double> x = to_doubles(in.x);
    for (size_t i = 0; i < x.size(); i += static_cast<size_t>(columns)) x[i] = 0;
    in.x = from_doubles(x, in.x.spec());

    EXPECT_TRUE(close(to_doubles(layer_norm(in.x, in.w, in.b)), expected_of(in), 4e-6));
  }
}

TEST(LayerNorm, ConstantRowsAreTheBiasToTheBit) {
  for_each_spec(std::vector<Shape>{{3, 1}, {3, 33}, {3, 4097}}, {DType::kF32, DType::kF64}, [&](const TensorSpec& s) {
    Inputs in(s);
    for (const double value : {0.0, 0.1, 12345.678}) {
      in.x = from_doubles(std::vector<double>(static_cast<size_t>(s.numel()), value), s);

      const Tensor y = layer_norm(in.x, in.w, in.b);

      EXPECT_TRUE(equal(y, expand(in.b, s))) << value;
    }
  });
}

TEST(LayerNorm, EpsilonIsAddedToTheVariance) {
  const Inputs in(TensorSpec(Shape{5, 33}), 1, -1e-2, 1e-2);
  for (const double epsilon : {0.0, 1e-12, 1e-3, 2.0})
    EXPECT_TRUE(close(to_doubles(layer_norm(in.x, in.w, in.b, epsilon)), expected_of(in, epsilon), 4e-6)) << epsilon;
}

// A row is NaN if one of its elements is, or is infinite, and others are not concerned.
TEST(LayerNorm, WhatIsNotFiniteStaysInItsRow) {
  for (const double odd : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    for (const auto& [columns, at] : {std::pair<int64_t, size_t>{17, 0}, {17, 5}, {1025, 1024}}) {
      Inputs in({{3, columns}, DType::kF32});
      std::vector<double> x = to_doubles(in.x);
      x[static_cast<size_t>(columns) + at] = odd;
      in.x = from_doubles(x, in.x.spec());

      const std::vector<double> y = to_doubles(layer_norm(in.x, in.w, in.b));

      for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / static_cast<size_t>(columns) == 1) << i;
    }
  }
}

TEST(LayerNorm, OtherLayoutsAreConverted) {
  for (const Layout layout : {Layout::kNhwc, Layout::kChwn}) {
    for (const int dims : {1, 2, 3, 4}) {
      const TensorSpec s({3, 10, 5, 7}, DType::kF32, layout);
      const Inputs in(s, dims);
      KernelLog log;

      const Tensor y = layer_norm(in.x, in.w, in.b);

      EXPECT_EQ(y.spec(), s);
      EXPECT_EQ(log.count("permute"), 2);
      EXPECT_TRUE(equal(y, layer_norm(converted(in.x, DType::kF32, Layout::kNchw), in.w, in.b)));
    }
  }
}

TEST(LayerNorm, NoRowsHaveGradientsOfZero) {
  Inputs in({{0, 10}, DType::kF32});
  const Tensor wanted[3] = {in.x.require_grad(), in.w.require_grad(), in.b.require_grad()};
  const Tensor y = layer_norm(in.x, in.w, in.b);

  const TensorList d = grad(y, wanted, random_tensor(y.spec(), 9));

  EXPECT_EQ(d[0].spec(), in.x.spec());
  for (const size_t i : {1, 2}) EXPECT_EQ(to_doubles(d[i]), std::vector<double>(10)) << i;
}

TEST(LayerNorm, DoesNotDependOnTheNumberOfThreads) {
  for_each_spec(kShapes, {DType::kF32}, [](const TensorSpec& s) {
    expect_same_with_any_threads([&] {
      Inputs in(s);
      const Tensor wanted[3] = {in.x.require_grad(), in.w.require_grad(), in.b.require_grad()};
      const Tensor y = layer_norm(in.x, in.w, in.b);
      const TensorList d = grad(y, wanted, random_tensor(s, 9));
      return std::vector<Tensor>{y.detached(), d[0], d[1], d[2]};
    });
  });
}

}  // namespace
}  // namespace plumb::test
