#include "ops/dropout.h"

#include <cmath>

#include "core/random.h"
#include "ops/fill.h"
#include "ops/grad.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb::test {
namespace {

const std::vector<Shape> kShapes = {{1},     {3},          {17},          {33},           {1025},
                                    {3, 17}, {1, 3, 5, 7}, {3, 17, 5, 7}, {33, 10, 3, 3}, {2, 130, 12, 11}};

/// Which elements stay, in logical order, as kernels/dropout.h says.
std::vector<double> kept_by_definition(int64_t n, double p, uint64_t seed, uint64_t offset) {
  std::vector<double> kept;
  for (int64_t i = 0; i < n; ++i) {
    const auto block = Philox::block(seed, offset + static_cast<uint64_t>(i / 4), kDropoutStream);
    kept.push_back(block[static_cast<size_t>(i % 4)] >= std::floor(p * 0x1p32) ? 1 : 0);
  }
  return kept;
}

TEST(Dropout, KeepsTheSameElementsInEveryLayout) {
  for_each_spec(kShapes, {DType::kF64, DType::kF32, DType::kBf16}, [](const TensorSpec& s) {
    Generator generator(42);
    const Tensor x = ones(s).require_grad();
    const int64_t blocks = (s.numel() + 3) / 4;
    for (int64_t call = 0; call < 2; ++call) {
      std::vector<double> expected = kept_by_definition(s.numel(), 0.3, 42, static_cast<uint64_t>(call * blocks));
      for (double& v : expected) v /= 0.7;

      const Tensor y = dropout(x, 0.3, generator);

      EXPECT_TRUE(close(to_doubles(y), expected, 2 * unit_roundoff(s.dtype)));
      EXPECT_TRUE(bitwise_equal(grad(y, {x}, ones(s))[0], y.detached()));  // the mask of the output
      EXPECT_EQ(generator.state.data<int64_t>()[1], (call + 1) * blocks);
    }
  });
}

TEST(Dropout, GivesTheSameWithAndWithoutARecording) {
  for_each_spec(kShapes, {DType::kF64, DType::kF32, DType::kBf16}, [](const TensorSpec& s) {
    Tensor x = random_tensor(s, 1);
    Generator a(7), b(7);
    const Tensor plain = dropout(x, 0.5, a), recorded = dropout(x.require_grad(), 0.5, b);
    EXPECT_TRUE(bitwise_equal(recorded.detached(), plain));
    EXPECT_TRUE(bitwise_equal(a.state, b.state));
  });
}

TEST(Dropout, DropsTheShareThatIsAskedFor) {
  constexpr int64_t kCount = 1'000'000;
  for (const double p : {0.01, 0.1, 0.5, 0.9, 0.999}) {
    Generator generator(3);
    const Tensor y = dropout(ones(Shape{kCount}), p, generator);
    int64_t dropped = 0;
    for (const float v : y.data<float>()) dropped += v == 0;
    const double deviation = std::sqrt(p * (1 - p) * kCount);
    EXPECT_NEAR(static_cast<double>(dropped), p * kCount, 5 * deviation) << p;
  }
}

TEST(Dropout, DroppedElementsAreZeroWhateverTheyWere) {
  Generator generator(1);
  const Tensor y = dropout(full(Shape{64}, std::nan("")), 0.5, generator);
  int64_t zeros = 0;
  for (const float v : y.data<float>()) zeros += v == 0;
  EXPECT_GT(zeros, 0);
}

TEST(Dropout, DoesNotDependOnTheNumberOfThreads) {
  for (const Layout layout : kPublicLayouts) {
    const Tensor x = random_tensor({{7, 65, 19, 17}, DType::kF32, layout}, 1);
    expect_same_with_any_threads([&] {
      Generator generator(9);
      return std::vector{dropout(x, 0.4, generator)};
    });
  }
}

TEST(Dropout, KernelsStayInTheirMemory) {
  KernelCheck check(4);
  for_each_spec(kShapes, {DType::kF32, DType::kBf16}, [](const TensorSpec& s) {
    Generator generator(42);
    const Tensor x = random_tensor(s, 1).require_grad(), y = dropout(x, 0.3, generator);
    grad(y, {x}, random_tensor(s, 2));
    dropout(x.detached(), 0.3, generator);
  });
  EXPECT_EQ(check.checked(), (std::set<std::string>{"dropout_backward:loop", "dropout_backward:reference",
                                                    "dropout_forward:philox", "dropout_forward:reference"}));
}

// Large enough to be written past the caches.
TEST(Dropout, LargeGradientsMatchTheReference) {
  const KernelCheck check(4);
  Generator generator(42);
  const Tensor x = random_tensor(Shape{pieces_past_caches(4) + 5699}, 1).require_grad(), y = dropout(x, 0.3, generator);
  grad(y, {x}, random_tensor(x.spec(), 2));
}

TEST(Dropout, IsNothingInEvaluationAndForZero) {
  Generator generator(1);
  const Tensor x = random_tensor(Shape{5}, 1);
  EXPECT_EQ(dropout(x, 0.5, generator, false).value.get(), x.value.get());
  EXPECT_EQ(dropout(x, 0, generator).value.get(), x.value.get());
  EXPECT_EQ(generator.state.data<int64_t>()[1], 0);
}

TEST(Dropout, CopiesOfAGeneratorShareItsState) {
  Generator generator(1);
  Generator copy = generator;
  dropout(ones(Shape{8}), 0.5, copy);
  EXPECT_EQ(generator.state.data<int64_t>()[1], 2);
}

}  // namespace
}  // namespace plumb::test
