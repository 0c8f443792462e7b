#include "kernels/cpu/gemm/f64_product.h"

#include <gtest/gtest.h>

#include "dispatch/policy.h"
#include "ops/matmul.h"
#include "tests/support/compare.h"

namespace plumb::test {
namespace {

using cpu::kF64Tile;

Tensor integers(int64_t rows, int64_t columns, uint64_t seed) {
  return small_integers({Shape{rows, columns}, DType::kF64}, seed);
}

TEST(F64Product, AddsWholeNumbersExactlyOnBothSidesOfATile) {
  const int64_t sizes[] = {1, 5, kF64Tile - 1, kF64Tile, kF64Tile + 1, 2 * kF64Tile + 7};
  for (const int64_t m : sizes) {
    for (const int64_t n : {sizes[1], sizes[4]}) {
      for (const int64_t k : {sizes[0], sizes[3], sizes[5]}) {
        for (const bool ta : {false, true}) {
          for (const bool tb : {false, true}) {
            SCOPED_TRACE(message("{} x {} x {}, {} {}", m, n, k, ta, tb));
            const Tensor a = ta ? integers(k, m, 1) : integers(m, k, 1), b = tb ? integers(n, k, 2) : integers(k, n, 2);
            const PolicyScope reference({.algorithm = algorithm_id("reference")});
            const Tensor product = matmul(a, b, ta, tb);
            constexpr int64_t kBeside = 3;  // numbers of c's rows that are another's
            std::vector<double> c(static_cast<size_t>(m * (n + kBeside)), 7.0);

            cpu::add_f64_product(m, n, k, {a.data<double>().data(), ta ? m : k, ta},
                                 {b.data<double>().data(), tb ? k : n, tb}, c.data(), n + kBeside);

            bool is_same = true;
            for (int64_t i = 0; i < m * (n + kBeside); ++i) {
              const int64_t row = i / (n + kBeside), column = i % (n + kBeside);
              const double added = column < n ? product.data<double>()[static_cast<size_t>(row * n + column)] : 0;
              is_same &= c[static_cast<size_t>(i)] == 7 + added;
            }
            EXPECT_TRUE(is_same);
          }
        }
      }
    }
  }
}

TEST(F64Product, GivesTheSameBitsWithAnyNumberOfThreads) {
  const Tensor a = random_tensor({Shape{3, 300, 70}, DType::kF64}, 1),
               b = random_tensor({Shape{1, 70, 500}, DType::kF64}, 2);
  expect_same_with_any_threads([&] { return std::vector{matmul(a, b)}; });
}

}  // namespace
}  // namespace plumb::test
