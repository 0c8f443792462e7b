// Products of packed panels, in f32 and, where the processor multiplies it, in bf16: there two depths are a word.
#include "kernels/cpu/gemm/packed_gemm.h"

#include <gtest/gtest.h>

#include "kernels/cpu/gemm/amx_block.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "tests/support/compare.h"
#include "tests/support/guarded.h"

namespace plumb::test {
namespace {

struct Case {
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false, relu = false;
  int64_t batch = 1;
};
// Blocks and vectors with a rest and without; one depth, an odd number of them, one part and several; rows that are few
// and many; depths that are cut into spans. In bf16 also: columns that are cut into groups, with few rows and with
// many, and a depth of which not all parts of b fit; the halves of AMX's blocks.
constexpr Case kCases[] = {
    {1, 1, 1},
    {3, 5, 2, false, true},
    {14, 32, 7, true},
    {15, 33, 255, true, true, true},
    {16, 31, 256, false, false, true},
    {29, 40, 513, true, false},
    {100, 70, 1031, false, true, true},
    {700, 65, 300, false, true},
    {701, 33, 259, true, false, true},
    {9, 300, 130, false, true},
    {7, 9, 64, false, true, true, 5},
    {5, 6, 33, true, false, false, 4},
    {14, 32, 16'384, true},
    {33, 47, 17'001, true, false, true},
    {64, 5, 20'011, false, true},
    {9, 7, 16'500, true, false, false, 3},
    {20, 2100, 300, false, true},
    {645, 1400, 259, true, false, true},
    {641, 3, 66'001, false, true},
    {48, 16, 64},
    {33, 17, 31, false, true, true},
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.batch << " of " << c.m << " x " << c.n << " x " << c.k << (c.transpose_a ? " a^T" : "")
             << (c.transpose_b ? " b^T" : "") << (c.relu ? " relu" : "");
}

struct Operands {
  Tensor a, b, bias;
};

cpu::Product problem(const Case& c, DType dtype, bool bias, int threads) {
  return {.dtype = dtype,
          .batch_a = Shape{c.batch},
          .batch_b = Shape{c.batch},
          .batch_c = Shape{c.batch},
          .m = c.m,
          .n = c.n,
          .k = c.k,
          .transpose_a = c.transpose_a,
          .transpose_b = c.transpose_b,
          .bias = bias,
          .threads = threads};
}

// In memory between zones that must stay as they are.
template <class T>
Tensor product_of(const Case& c, const Operands& of, int threads) {
  const DType dtype = of.a.dtype();
  const auto kernel = cpu::packed_gemm_kernel(problem(c, dtype, true, threads), c.relu);
  const TensorSpec y(Shape{c.batch, c.m, c.n}, dtype);
  const auto copy = [](const Tensor& t) { return Guarded(t.data<T>().data(), t.spec().bytes()); };
  const Guarded a = copy(of.a), b = copy(of.b), bias = copy(of.bias), result(y.bytes());
  const Guarded memory(kernel->info().workspace_bytes);
  void *in[] = {a.data(), b.data(), bias.data()}, *out = result.data();
  kernel->run({in, &out, memory.data()});
  for (const Guarded* g : {&a, &b, &bias, &result, &memory}) EXPECT_TRUE(g->intact());
  return Tensor::from(std::span(static_cast<const T*>(result.data()), static_cast<size_t>(y.numel())), y);
}
Tensor product(const Case& c, const Operands& of, int threads) {
  return of.a.dtype() == DType::kF32 ? product_of<float>(c, of, threads) : product_of<Bfloat16>(c, of, threads);
}

template <class Make>
Operands operands(const Case& c, DType dtype, const Make& make) {
  const Shape a = c.transpose_a ? Shape{c.batch, c.k, c.m} : Shape{c.batch, c.m, c.k};
  const Shape b = c.transpose_b ? Shape{c.batch, c.n, c.k} : Shape{c.batch, c.k, c.n};
  return {make(TensorSpec(a, dtype), 1), make(TensorSpec(b, dtype), 2), make(TensorSpec(Shape{c.n}, dtype), 3)};
}

Tensor by_definition(const Case& c, const Operands& of, DType dtype) {
  const auto wide = [](const Tensor& t) { return to(t, DType::kF64); };
  Tensor y = matmul(wide(of.a), wide(of.b), c.transpose_a, c.transpose_b) + wide(of.bias);
  if (c.relu) y = relu(y);
  return to(y, dtype);
}

std::vector<DType> dtypes() {
  if (!cpu::kMultiplies<Bfloat16>) return {DType::kF32};
  return {DType::kF32, DType::kBf16};
}

TEST(PackedGemm, SumsOfWholeNumbersAreRoundedOnce) {
  for (const DType dtype : dtypes()) {
    for (const Case& c : kCases) {
      SCOPED_TRACE(testing::Message() << c << " " << to_string(dtype));
      const auto whole = [](const TensorSpec& s, uint64_t seed) { return small_integers(s, seed); };
      const Operands of = operands(c, dtype, whole);
      EXPECT_TRUE(bitwise_equal(product(c, of, 2), by_definition(c, of, dtype)));
    }
  }
}

TEST(PackedGemm, ThreadsChangeNoBit) {
  for (const DType dtype : dtypes()) {
    for (const Case& c : kCases) {
      SCOPED_TRACE(testing::Message() << c << " " << to_string(dtype));
      const Operands of = operands(c, dtype, [](const TensorSpec& s, uint64_t seed) { return random_tensor(s, seed); });
      const Tensor expected = product(c, of, 1);
      EXPECT_TRUE(close(expected, by_definition(c, of, DType::kF64), dtype == DType::kF32 ? 1e-4 : 0.02));
      for (const int threads : {2, 3, 7}) EXPECT_TRUE(bitwise_equal(product(c, of, threads), expected)) << threads;
    }
  }
}

TEST(PackedGemm, IsForF32AndForBf16ThatTheProcessorMultiplies) {
  const auto is_made = [](DType dtype) {
    return cpu::packed_gemm_kernel(problem({8, 8, 8}, dtype, false, 1)) != nullptr;
  };
  EXPECT_TRUE(is_made(DType::kF32));
  EXPECT_EQ(is_made(DType::kBf16), cpu::kMultiplies<Bfloat16>);
  EXPECT_FALSE(is_made(DType::kF64));
}

// In bf16 sums are kept between parts of the depth: of a block, or of all of c where not all parts of b fit.
TEST(PackedGemm, KeepsSumsOfBlocksInBf16) {
  if (!cpu::kMultiplies<Bfloat16>) GTEST_SKIP() << "this processor does not multiply bf16";
  const auto bytes = [](int64_t k) {
    return cpu::packed_gemm_kernel(problem({4000, 400, k}, DType::kBf16, false, 1))->info().workspace_bytes;
  };
  const size_t of_c = size_t{4000} * 400 * 4;
  EXPECT_LT(bytes(600), of_c);
  EXPECT_GE(bytes(80'000), of_c);
}

TEST(PackedGemm, IsComputedByAmxWhereTheProcessorHasIt) {
  const auto name = [](DType dtype) {
    return cpu::packed_gemm_kernel(problem({8, 8, 8}, dtype, false, 1))->info().name;
  };
  EXPECT_EQ(name(DType::kF32), "plumb:packed_gemm");
  if (cpu::has_amx()) {
    EXPECT_EQ(name(DType::kBf16), "plumb:packed_gemm:amx");
  }
}

}  // namespace
}  // namespace plumb::test
