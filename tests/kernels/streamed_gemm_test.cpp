// The fully connected layer of few rows through which the weights stream.
#include <gtest/gtest.h>

#include <array>

#include "dispatch/kernel_cache.h"
#include "dispatch/policy.h"
#include "kernels/cpu/gemm/packed_block.h"
#include "ops/linear.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb::test {
namespace {

Tensor by(const char* algorithm, const Tensor& x, const Tensor& w, const Tensor& b, Activation activation) {
  const PolicyScope scope({.algorithm = algorithm_id(algorithm)});
  return linear(x, w, b, activation);
}

// Columns of one vector and of two, rest and all; rows of w that fill no group; depths of no, one and several parts.
TEST(StreamedGemm, SumsOfWholeNumbersAreExact) {
  uint64_t seed = 0;
  for (const int64_t m : {1, 5, 15, 16, 17, 31, 32, 33, 48, 63, 64}) {
    for (const auto& [n, k] : {std::pair{1, 1}, {7, 15}, {8, 33}, {15, 1024}, {16, 1025}, {17, 2100}, {40, 64}}) {
      SCOPED_TRACE(message("{} rows, {} by {}", m, n, k));
      const Tensor x = small_integers(TensorSpec(Shape{m, k}), ++seed),
                   w = small_integers(TensorSpec(Shape{n, k}), ++seed);
      const Tensor b = seed % 4 ? small_integers(TensorSpec(Shape{n}), ++seed) : Tensor();
      const Activation activation = seed % 3 ? Activation::kRelu : Activation::kNone;
      EXPECT_TRUE(bitwise_equal(by("streamed_gemm", x, w, b, activation), by("reference", x, w, b, activation)));
    }
  }
}

// In bf16 two neighbours of a row are a word: a row of an odd number of them has none. With AMX, groups of 32 rows
// whose depths are multiples of 32 are read as they lie.
TEST(StreamedGemm, SumsOfWholeNumbersInBf16AreRoundedOnce) {
  if (!cpu::kMultiplies<Bfloat16>) GTEST_SKIP() << "this processor does not multiply bf16";
  uint64_t seed = 0;
  for (const int64_t m : {1, 15, 17, 33, 64}) {
    for (const auto& [n, k] :
         {std::pair{1, 2}, {7, 16}, {15, 1024}, {16, 1030}, {17, 4200}, {40, 64}, {32, 32}, {75, 4128}}) {
      SCOPED_TRACE(message("{} rows, {} by {}", m, n, k));
      const auto whole = [&](const Shape& s) { return small_integers(TensorSpec(s, DType::kBf16), ++seed); };
      const Tensor x = whole({m, k}), w = whole({n, k}), b = seed % 4 ? whole({n}) : Tensor();
      const Activation activation = seed % 3 ? Activation::kRelu : Activation::kNone;
      const KernelLog log;
      const Tensor y = by("streamed_gemm", x, w, b, activation);
      EXPECT_TRUE(log.has("linear_forward:streamed_gemm"));
      EXPECT_TRUE(bitwise_equal(y, by("reference", x, w, b, activation)));
    }
  }
}

TEST(StreamedGemm, KeepsToItsMemoryAndRounding) {
  KernelCheck check(8);
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    const auto random = [&](const Shape& s, uint64_t seed) { return random_tensor(TensorSpec(s, dtype), seed); };
    for (const auto& [m, n, k] : {std::array{3, 20, 7}, {16, 33, 130}, {20, 9, 1500}, {50, 70, 64}, {64, 16, 1024}}) {
      const Tensor x = random({m, k}, 1), w = random({n, k}, 2);
      linear(x, w, random({n}, 3));
      linear(x, w, Tensor(), Activation::kRelu);
    }
  }
  EXPECT_TRUE(check.checked().contains("linear_forward:streamed_gemm"));
}

TEST(StreamedGemm, ThreadsChangeNoBit) {
  const Tensor x = random_tensor(TensorSpec(Shape{21, 1100}), 1), w = random_tensor(TensorSpec(Shape{75, 1100}), 2);
  expect_same_with_any_threads([&] { return std::vector{by("streamed_gemm", x, w, Tensor(), Activation::kNone)}; });
}

TEST(StreamedGemm, IsForFewRows) {
  const auto runs = [](int64_t rows, DType dtype, int64_t depth = 32) {
    const PolicyScope scope({.algorithm = algorithm_id("streamed_gemm")});
    const TensorSpec x(Shape{rows, depth}, dtype), w(Shape{40, depth}, dtype), y(Shape{rows, 40}, dtype);
    return prepare<LinearForward>({}, {x, w}, {y})->kernel->info().algorithm;
  };
  EXPECT_EQ(runs(64, DType::kF32), "streamed_gemm");
  EXPECT_NE(runs(65, DType::kF32), "streamed_gemm");
  EXPECT_EQ(runs(64, DType::kBf16) == "streamed_gemm", cpu::kMultiplies<Bfloat16>);
  EXPECT_NE(runs(64, DType::kBf16, 33), "streamed_gemm");
  EXPECT_NE(runs(64, DType::kF64), "streamed_gemm");
}

}  // namespace
}  // namespace plumb::test
