#include "core/random.h"
#include "ops/random.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/compare.h"

namespace plumb {
namespace {

using Block = std::array<uint32_t, 4>;

// The known-answer vectors that Random123 publishes for philox4x32-10.
TEST(Philox, GivesThePublishedNumbers) {
  EXPECT_EQ(Philox::block(0, 0, 0), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint64_t ones = ~uint64_t{0};
  EXPECT_EQ(Philox::block(ones, ones, ones), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox::block(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UnitIsBelowOne) {
  EXPECT_EQ(Philox::unit(0), 0.0f);
  EXPECT_EQ(Philox::unit(0xffffffff), 1.0f - 0x1p-24f);
}

TEST(Random, UniformNumbersFillTheirRange) {
  const Tensor x = uniform(TensorSpec(Shape{100000}), -2, 3, 1);
  double sum = 0, squares = 0;
  for (const float v : x.data<float>()) {
    ASSERT_GE(v, -2.0f);
    ASSERT_LT(v, 3.0f);
    sum += static_cast<double>(v);
    squares += static_cast<double>(v) * static_cast<double>(v);
  }
  const double mean = sum / 1e5;
  EXPECT_NEAR(mean, 0.5, 0.02);  // the standard deviation of the mean is 0.0046
  EXPECT_NEAR(squares / 1e5 - mean * mean, 25.0 / 12, 0.03);
}

TEST(Random, WholeNumbersReachBothEnds) {
  const Tensor x = uniform(TensorSpec(Shape{1000}, DType::kI32), -1, 1, 2);
  int counts[3] = {};
  for (const int32_t v : x.data<int32_t>()) {
    ASSERT_TRUE(v >= -1 && v <= 1);
    ++counts[v + 1];
  }
  for (const int c : counts) EXPECT_NEAR(c, 333, 60);
}

// Of 24 bits, 2^32 numbers would all be multiples of 256.
TEST(Random, WholeNumbersOfAWideRangeAreOfAllKinds) {
  const Tensor x = uniform(TensorSpec(Shape{4096}, DType::kI32), -0x1p31, 0x1p31 - 1, 2);
  int odd = 0, negative = 0;
  for (const int32_t v : x.data<int32_t>()) odd += v & 1, negative += v < 0;
  EXPECT_NEAR(odd, 2048, 160);  // five deviations
  EXPECT_NEAR(negative, 2048, 160);
}

TEST(Random, NormalNumbersHaveMeanAndDeviation) {
  const Tensor x = normal(TensorSpec(Shape{100001}), 2, 0.5, 3);
  double sum = 0, squares = 0;
  int beyond_two = 0;
  for (const float v : x.data<float>()) {
    sum += static_cast<double>(v);
    squares += (static_cast<double>(v) - 2) * (static_cast<double>(v) - 2);
    beyond_two += std::abs(v - 2) > 1;
  }
  EXPECT_NEAR(sum / 100001, 2, 0.01);
  EXPECT_NEAR(squares / 100001, 0.25, 0.005);
  EXPECT_NEAR(beyond_two / 100001.0, 0.0455, 0.003);
}

TEST(Random, NumbersDependOnTheSeedAndNotOnTheCountOrTheDtype) {
  const Tensor x = uniform(TensorSpec(Shape{1025}), 0, 1, 5), other = uniform(TensorSpec(Shape{1025}), 0, 1, 6);
  EXPECT_FALSE(test::bitwise_equal(other, x));
  const Tensor shorter = uniform(TensorSpec(Shape{33}), 0, 1, 5),
               wide = uniform(TensorSpec(Shape{1025}, DType::kF64), 0, 1, 5);
  for (size_t i = 0; i < 33; ++i) EXPECT_EQ(shorter.data<float>()[i], x.data<float>()[i]);
  for (size_t i = 0; i < 1025; ++i) EXPECT_EQ(static_cast<float>(wide.data<double>()[i]), x.data<float>()[i]);
}

}  // namespace
}  // namespace plumb
