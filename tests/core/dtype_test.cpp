#include "core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/compare.h"

namespace plumb {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A 16-bit float by the definition of its format: exponent bits, mantissa bits, and their bias.
struct Format {
  int mantissa_bits, bias, largest_exponent;
  double value(uint16_t bits) const {
    const int exponent = (bits & 0x7fff) >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
    double v;
    if (exponent == largest_exponent) {
      v = mantissa ? std::nan("") : static_cast<double>(kInfinity);
    } else if (exponent == 0) {
      v = std::ldexp(mantissa, 1 - bias - mantissa_bits);
    } else {
      v = std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
    }
    return bits & 0x8000 ? -v : v;
  }
  // Rounded to nearest, ties to even, by arithmetic on exact doubles.
  double rounded(float f) const {
    if (f == 0 || !std::isfinite(f)) return static_cast<double>(f);
    const double v = static_cast<double>(f);
    const double step = std::ldexp(1.0, std::max(std::ilogb(v), 1 - bias) - mantissa_bits);
    const double r = std::nearbyint(v / step) * step;
    const double limit = std::ldexp(1.0, largest_exponent - bias);
    return std::abs(r) >= limit ? std::copysign(static_cast<double>(kInfinity), r) : r;
  }
};
constexpr Format kHalf{10, 15, 31}, kBrain{7, 127, 255};

template <class T>
class SixteenBits : public testing::Test {
 public:
  static constexpr const Format& format() {
    if constexpr (std::is_same_v<T, Float16>) return kHalf;
    return kBrain;
  }
  static T of_bits(uint32_t bits) {
    T t;
    t.bits = static_cast<uint16_t>(bits);
    return t;
  }
};
using SixteenBitTypes = testing::Types<Float16, Bfloat16>;
TYPED_TEST_SUITE(SixteenBits, SixteenBitTypes);

TYPED_TEST(SixteenBits, EveryCodeHasItsValue) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const double expected = this->format().value(static_cast<uint16_t>(bits));
    const auto got = static_cast<float>(this->of_bits(bits));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(got), expected) << bits;
      ASSERT_EQ(std::signbit(got), (bits & 0x8000) != 0) << bits;
      ASSERT_EQ(TypeParam(got).bits, bits);
    }
  }
}

// All that lies at, beside and half-way between neighbours.
TYPED_TEST(SixteenBits, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7fff; ++bits) {
    const auto low = static_cast<float>(this->of_bits(bits)), high = static_cast<float>(this->of_bits(bits + 1));
    if (std::isnan(low) || std::isnan(high)) continue;
    const float middle =
        std::isinf(high) ? low + (low - static_cast<float>(this->of_bits(bits - 1))) / 2 : low + (high - low) / 2;
    for (const float v : {low, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, kInfinity),
                          std::nextafter(low, kInfinity)}) {
      for (const float f : {v, -v}) {
        ASSERT_EQ(static_cast<double>(static_cast<float>(TypeParam(f))), this->format().rounded(f)) << f;
      }
    }
  }
}

TYPED_TEST(SixteenBits, KeepsInfinityAndNan) {
  EXPECT_EQ(static_cast<float>(TypeParam(kInfinity)), kInfinity);
  EXPECT_EQ(static_cast<float>(TypeParam(-kInfinity)), -kInfinity);
  EXPECT_EQ(static_cast<float>(TypeParam(std::numeric_limits<float>::max())), kInfinity);
  for (const uint32_t nan : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu, 0x7fc00000u}) {
    EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(std::bit_cast<float>(nan))))) << nan;
  }
}

TEST(DType, NamesGoBothWays) {
  for (int i = 0; i < kDTypeCount; ++i)
    EXPECT_EQ(dtype_from_string(to_string(static_cast<DType>(i))), static_cast<DType>(i));
  EXPECT_TRUE(test::refused([] { dtype_from_string("f8"); }, "dtype \"f8\" is unknown"));
}

TEST(DType, DispatchGivesTheTypeOfTheDtype) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto t = static_cast<DType>(i);
    EXPECT_EQ(dispatch_dtype(t, []<class T>() { return dtype_of<T>; }), t);
    EXPECT_EQ(dispatch_dtype(t, []<class T>() { return sizeof(T); }), size_of(t));
  }
  EXPECT_TRUE(test::refused([] { dispatch_dtype(static_cast<DType>(99), []<class T>() {}); }, "dtype 99 is unknown"));
}

TEST(DType, FloatingAreFour) {
  EXPECT_TRUE(is_floating(DType::kF32) && is_floating(DType::kF64) && is_floating(DType::kF16) &&
              is_floating(DType::kBf16));
  EXPECT_FALSE(is_floating(DType::kI32) || is_floating(DType::kI64) || is_floating(DType::kU8));
}

}  // namespace
}  // namespace plumb
