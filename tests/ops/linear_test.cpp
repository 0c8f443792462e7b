// What the cases of tests/cases do not say: numbers worked out by hand, errors, and which kernel runs.
#include "ops/linear.h"
#include "dispatch/policy.h"

#include <gtest/gtest.h>

#include <array>

#include "dispatch/kernel_cache.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb {
namespace {

const char* const kAlgorithms[] = {"matmul", "gemm", "packed_gemm", "inner_product", "reference"};

TEST(Linear, IsTheProductWorkedOutByHand) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, Shape{2, 2}).require_grad();
  const Tensor w = Tensor::from<float>({1, 0, 2, 1, -1, 3}, Shape{3, 2}).require_grad();
  const Tensor b = Tensor::from<float>({10, 20, 30}, Shape{3}).require_grad();
  const Tensor dy = Tensor::from<float>({1, 0, 2, 0, 1, 1}, Shape{2, 3});
  for (const char* algorithm : kAlgorithms) {
    const PolicyScope scope({.algorithm = algorithm_id(algorithm)});
    const Tensor y = linear(x, w, b);
    EXPECT_TRUE(test::equal(y, Tensor::from<float>({11, 24, 35, 13, 30, 39}, Shape{2, 3}))) << algorithm;
    const TensorList g = grad(y, {x, w, b}, dy);
    EXPECT_TRUE(test::equal(g[0], Tensor::from<float>({-1, 6, 1, 4}, Shape{2, 2}))) << algorithm;
    EXPECT_TRUE(test::equal(g[1], Tensor::from<float>({1, 2, 3, 4, 5, 8}, Shape{3, 2}))) << algorithm;
    EXPECT_TRUE(test::equal(g[2], Tensor::from<float>({1, 1, 3}, Shape{3}))) << algorithm;
  }
}

TEST(Linear, TheAlgorithmIsTheOneThatIsNamed) {
  const TensorSpec x(Shape{32, 64}), w(Shape{48, 64}), y(Shape{32, 48}), b(Shape{48});
  for (const char* algorithm : kAlgorithms) {
    const PolicyScope scope({.algorithm = algorithm_id(algorithm)});
    for (const detail::Ref<PreparedKernel>& p :
         {prepare<LinearForward>({}, {x, w}, {y}), prepare<LinearBackwardInput>({}, {y, w}, {x}),
          prepare<LinearBackwardWeight>({}, {y, x}, {w})}) {
      EXPECT_EQ(p->kernel->info().algorithm, algorithm) << p->kind->name;
      EXPECT_EQ(p->kernel->info().flops, 2.0 * 32 * 64 * 48);
    }
    // A plain product has no place for a bias.
    const detail::Ref<PreparedKernel> biased = prepare<LinearForward>({}, {x, w, b}, {y});
    EXPECT_EQ(biased->kernel->info().algorithm == algorithm, std::string(algorithm) != "gemm");
  }
}

TEST(Linear, TheDefaultIsSkinnyWhereTheWeightsPassingIsAll) {
  const auto runs = [](int64_t rows, int64_t size) {
    const TensorSpec x(Shape{rows, size}), w(Shape{size, size});
    return std::array{prepare<LinearForward>({}, {x, w}, {x})->kernel->info().algorithm,
                      prepare<LinearBackwardInput>({}, {x, w}, {x})->kernel->info().algorithm,
                      prepare<LinearBackwardWeight>({}, {x, x}, {w})->kernel->info().algorithm};
  };
  using Algorithms = std::array<std::string, 3>;
  EXPECT_EQ(runs(2, 2048), (Algorithms{"skinny_gemm", "skinny_gemm", "skinny_gemm"}));
  EXPECT_EQ(runs(8, 2048), (Algorithms{"skinny_gemm", "skinny_gemm", "gemm"}));
  EXPECT_EQ(runs(8, 1024), (Algorithms{"skinny_gemm", "gemm", "gemm"}));
  EXPECT_EQ(runs(9, 1024), (Algorithms{"matmul", "gemm", "gemm"}));
  EXPECT_EQ(runs(1, 512), (Algorithms{"matmul", "gemm", "gemm"}));
}

// The gradient of a matrix of this size is written past the caches.
TEST(Linear, JointGradientsOfALargeMatrixMatchTheReference) {
  const int64_t rows = 2048 + 5;
  const TensorSpec x(Shape{2, 2048}), w(Shape{rows, 2048}), dy(Shape{2, rows});
  ASSERT_TRUE(detail::prefers_joint_backward(x, w));
  test::KernelCheck check(8);
  const Tensor from_x = test::random_tensor(x, 1).require_grad(), from_w = test::random_tensor(w, 2).require_grad();
  grad(linear(from_x, from_w), {from_x, from_w}, test::random_tensor(dy, 3));
  EXPECT_TRUE(check.checked().contains("linear_backward:skinny_gemm"));
}

// The vendor has no kernel of both gradients; where only its kernels are to be, it makes each of them.
TEST(Linear, ThePolicyOfTheVendorTakesItsProducts) {
  const TensorSpec x(Shape{1, 2048}), w(Shape{2048, 2048});
  ASSERT_TRUE(detail::prefers_joint_backward(x, w));
  const PolicyScope scope({.kernels = KernelSet::kVendor});
  const test::KernelLog log;
  const Tensor from_x = test::random_tensor(x, 1).require_grad(), from_w = test::random_tensor(w, 2).require_grad();
  grad(linear(from_x, from_w), {from_x, from_w}, test::random_tensor(x, 3));
  EXPECT_TRUE(log.has("linear_forward:matmul") && log.has("linear_backward_input:gemm") &&
              log.has("linear_backward_weight:gemm"))
      << testing::PrintToString(log.ran);
}

TEST(Linear, LongSumsOfFewRowsStayAccurate) {
  constexpr int64_t kLong = 1 << 18;
  const PolicyScope skinny({.algorithm = algorithm_id("skinny_gemm")});
  for (const int64_t rows : {1, 2, 9, 64}) {
    SCOPED_TRACE(rows);
    const Tensor w = ones(TensorSpec(Shape{kLong, 20})).require_grad(),
                 x = ones(TensorSpec(Shape{rows, 20})).require_grad();
    const TensorList d = grad(linear(x, w), {x, w}, full(Shape{rows, kLong}, 0.1, DType::kF32));
    for (const int64_t row : {int64_t{0}, rows - 1}) EXPECT_NEAR(d[0].at({row, 19}) / (0.1 * kLong), 1, 1e-4);
  }
  const Tensor long_row = full(Shape{1, kLong}, 0.1, DType::kF32);
  EXPECT_NEAR(linear(long_row, ones(TensorSpec(Shape{20, kLong}))).at({0, 19}) / (0.1 * kLong), 1, 1e-4);
}

TEST(Linear, LeadingDimensionsAreABatch) {
  const Tensor x = test::small_integers(TensorSpec(Shape{2, 3, 4}), 1),
               w = test::small_integers(TensorSpec(Shape{5, 4}), 2);
  const Tensor y = linear(x, w);
  EXPECT_EQ(y.shape(), Shape({2, 3, 5}));
  const Tensor one = linear(Tensor::from<float>(x.data<float>().subspan(20, 4), TensorSpec(Shape{4})), w);
  EXPECT_EQ(one.shape(), Shape({5}));
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(y.data<float>()[25 + i], one.data<float>()[i]);
}

TEST(Linear, WithoutInputsOrRowsThereIsOnlyTheBias) {
  const Tensor b = Tensor::from<float>({1, 2}, Shape{2});
  EXPECT_TRUE(test::equal(linear(Tensor::empty(TensorSpec(Shape{3, 0})), Tensor::empty(TensorSpec(Shape{2, 0})), b),
                          Tensor::from<float>({1, 2, 1, 2, 1, 2}, Shape{3, 2})));
  EXPECT_EQ(linear(Tensor::empty(TensorSpec(Shape{2, 3, 0})), Tensor::empty(TensorSpec(Shape{2, 0})), b).shape(),
            Shape({2, 3, 2}));
  EXPECT_EQ(linear(Tensor::empty(TensorSpec(Shape{0, 5})), Tensor::empty(TensorSpec(Shape{2, 5})), b).shape(),
            Shape({0, 2}));
}

}  // namespace
}  // namespace plumb
