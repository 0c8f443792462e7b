// What the cases of tests/cases do not say: numbers worked out by hand, errors, and which kernel runs.
#include "ops/matmul.h"
#include "dispatch/policy.h"
#include "kernels/threads.h"

#include <gtest/gtest.h>

#include "dispatch/kernel_cache.h"
#include "ops/fill.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb {
namespace {

const char* const kAlgorithms[] = {"matmul", "gemm", "packed_gemm", "reference"};

TEST(Matmul, IsTheProductWorkedOutByHand) {
  const Tensor a = Tensor::from<float>({1, 2, 3, 4, 5, 6}, Shape{2, 3}),
               b = Tensor::from<float>({7, 8, 9, 10, 11, 12}, Shape{3, 2});
  for (const char* algorithm : kAlgorithms) {
    const PolicyScope scope({.algorithm = algorithm_id(algorithm)});
    EXPECT_TRUE(test::equal(matmul(a, b), Tensor::from<float>({58, 64, 139, 154}, Shape{2, 2}))) << algorithm;
    EXPECT_TRUE(test::equal(matmul(a, a, false, true), Tensor::from<float>({14, 32, 32, 77}, Shape{2, 2})))
        << algorithm;
    EXPECT_TRUE(test::equal(matmul(b, b, true, false), Tensor::from<float>({251, 278, 278, 308}, Shape{2, 2})))
        << algorithm;
    EXPECT_TRUE(test::equal(matmul(b, a, true, true), Tensor::from<float>({58, 139, 64, 154}, Shape{2, 2})))
        << algorithm;
  }
}

TEST(Matmul, TheAlgorithmIsTheOneThatIsNamed) {
  const TensorSpec a(Shape{32, 64}), b(Shape{64, 48}), y(Shape{32, 48});
  for (const char* algorithm : kAlgorithms) {
    const PolicyScope scope({.algorithm = algorithm_id(algorithm)});
    const detail::Ref<PreparedKernel> p = prepare<Matmul>({}, {a, b}, {y});
    EXPECT_EQ(p->kernel->info().algorithm, algorithm);
    EXPECT_EQ(p->kernel->info().flops, 2.0 * 32 * 64 * 48);
    // gemm is for one f32 product, or any of f64: batches and bf16 visibly go elsewhere.
    const auto elsewhere = [&](const TensorSpec& c, const TensorSpec& d, const TensorSpec& z) {
      return prepare<Matmul>({}, {c, d}, {z})->kernel->info().algorithm;
    };
    if (std::string(algorithm) != "gemm") continue;
    EXPECT_NE(elsewhere(TensorSpec(Shape{2, 32, 64}), TensorSpec(Shape{2, 64, 48}), TensorSpec(Shape{2, 32, 48})),
              "gemm");
    EXPECT_NE(elsewhere(a.with(DType::kBf16), b.with(DType::kBf16), y.with(DType::kBf16)), "gemm");
    EXPECT_EQ(elsewhere(a.with(DType::kF64), b.with(DType::kF64), y.with(DType::kF64)), "gemm");
  }
}

TEST(Matmul, ThreadsHaveColumnsOfTheirOwnWhereThereAreManyOfBoth) {
  const int before = threads();
  for (const int n : {1, 2, 3}) {
    set_threads(n);
    const PolicyScope scope({.algorithm = algorithm_id("gemm_columns")});
    for (const int64_t columns : {127, 128, 333}) {
      test::KernelLog log;
      const Tensor a = test::small_integers(TensorSpec(Shape{7, 50}), 1),
                   b = test::small_integers(TensorSpec(Shape{50, columns}), 2);
      const Tensor c = matmul(a, b);
      EXPECT_EQ(log.has("matmul:gemm_columns"), n > 1 && columns >= 64 * n) << n << " threads, " << columns;
      EXPECT_TRUE(test::equal(c, test::converted(matmul(test::converted(a, DType::kF64, Layout::kNchw),
                                                        test::converted(b, DType::kF64, Layout::kNchw)),
                                                 DType::kF32, Layout::kNchw)));
    }
  }
  set_threads(before);
}

// Panels, blocks and parts of the depth that are whole, begun or missing; more columns than are packed at once;
// batches.
TEST(Matmul, PackedPanelsAreCutAnywhere) {
  struct Size {
    int64_t m, n, k;
  };
  const auto product = [](const char* algorithm, const Tensor& a, const Tensor& b, bool ta, bool tb) {
    const PolicyScope scope({.algorithm = algorithm_id(algorithm)});
    const test::KernelLog log;
    const Tensor y = matmul(a, b, ta, tb);
    EXPECT_TRUE(log.has(std::string("matmul:") + algorithm));
    return y;
  };
  const auto check = [&](const Size& s, const Shape& batch_a, const Shape& batch_b, bool ta, bool tb) {
    const auto matrices = [](const Shape& batch, int64_t rows, int64_t columns, uint64_t seed) {
      std::vector<int64_t> extents(batch.begin(), batch.end());
      extents.insert(extents.end(), {rows, columns});
      return test::small_integers(TensorSpec(Shape(std::span<const int64_t>(extents))), seed);
    };
    const Tensor a = ta ? matrices(batch_a, s.k, s.m, 1) : matrices(batch_a, s.m, s.k, 1),
                 b = tb ? matrices(batch_b, s.n, s.k, 2) : matrices(batch_b, s.k, s.n, 2);
    EXPECT_TRUE(test::equal(product("packed_gemm", a, b, ta, tb), product("reference", a, b, ta, tb)))
        << threads() << " threads, " << to_string(a.shape()) << (ta ? " transposed" : "") << " by "
        << to_string(b.shape()) << (tb ? " transposed" : "");
  };
  const int before = threads();
  for (const int n : {1, 2, 3}) {
    set_threads(n);
    if (n == 2) {
      check({40, 16, 66000}, {}, {}, false, true);  // so deep that b's parts are packed one at a time
      check({20, 17, 2000}, {}, {}, false, false);  // so few rows that threads share the columns
    }
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        for (const Size s : {Size{1, 1, 1}, {5, 17, 3}, {97, 65, 300}, {64, 160, 256}, {600, 70, 33}, {3, 8300, 30}})
          check(s, {}, {}, ta, tb);
        for (const Size s : {Size{1, 1, 1}, {5, 17, 3}, {40, 33, 270}}) {
          for (const int64_t batch : {2, 5}) {
            check(s, {batch}, {1}, ta, tb);
            check(s, {batch}, {batch}, ta, tb);
            check(s, {1, batch}, {3, batch}, ta, tb);
          }
        }
      }
    }
  }
  set_threads(2);
  check({650, 8210, 1}, {}, {}, false, false);  // more rows than are few, more columns than are packed at once
  set_threads(before);
}

// One running sum of these in f32 is off by some thousandths.
TEST(Matmul, LongDepthsStayAccurate) {
  constexpr int64_t kDepth = 401408;
  const PolicyScope packed({.algorithm = algorithm_id("packed_gemm")});
  const Tensor y = matmul(full(Shape{16, kDepth}, 0.3f, DType::kF32), full(Shape{kDepth, 16}, 0.7f, DType::kF32));
  const double expected = static_cast<double>(0.3f) * static_cast<double>(0.7f) * kDepth;
  EXPECT_NEAR(y.at({3, 5}) / expected, 1, 1e-4);
}

}  // namespace
}  // namespace plumb
