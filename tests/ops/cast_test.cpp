// to(dtype): what kernels/cast.h says, between all dtypes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>

#include "ops/convert.h"
#include "ops/fill.h"
#include "tests/support/compare.h"

namespace plumb {
namespace {

constexpr DType kDTypes[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBf16, DType::kI32, DType::kI64, DType::kU8};

const double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::nan("");

// What kernels/cast.h says, in the widest types.
double cast_of(double v, DType from, DType into) {
  const auto limit = [](double w, double least, double most) {
    return w != w ? 0 : std::clamp(std::trunc(w), least, most);
  };
  switch (into) {
    case DType::kF64: return v;
    case DType::kF32: return static_cast<double>(static_cast<float>(v));
    case DType::kF16:
    case DType::kBf16: {  // rounded once, to a multiple of the distance between neighbours
      if (v != v || std::isinf(v) || v == 0) return v;
      const int digits = into == DType::kF16 ? 11 : 8, least = into == DType::kF16 ? -24 : -133;
      const double step = std::ldexp(1.0, std::max(std::ilogb(v) - digits + 1, least));
      const double most = into == DType::kF16 ? 65504 : std::ldexp(255.0, 120);
      const double rounded = std::nearbyint(v / step) * step;
      return std::abs(rounded) > most ? std::copysign(kInfinity, v) : rounded;
    }
    case DType::kI32:
      if (!is_floating(from)) return static_cast<double>(static_cast<int32_t>(static_cast<int64_t>(v)));
      return limit(v, -2147483648.0, 2147483647.0);
    case DType::kI64: return limit(v, -9223372036854775808.0, 9223372036854775807.0);
    case DType::kU8:
      if (!is_floating(from)) return static_cast<double>(static_cast<uint8_t>(static_cast<int64_t>(v)));
      return limit(v, 0, 255);
  }
  return v;
}

TEST(ToDType, ConvertsAsDocumented) {
  const double edges[] = {0,    0.5,  1.5,   254.6, 255.5, 256,  1.00390625, 1.01171875,
                          2049, 2051, 65504, 65519, 65520, 1e-8, 2.98e-8};
  const double large[] = {2147483647, 2147483648, 2147483649, 4e9, 1e19, 1e38, 3.4e38, 1e300, 1e-40, kInfinity, kNan};
  std::vector<double> special;
  for (const auto list : {std::span<const double>(edges), std::span<const double>(large)}) {
    for (const double v : list) special.insert(special.end(), {v, -v});
  }
  for (int k = -60; k < 300; ++k) special.insert(special.end(), {1.37 * k, k + 0.0});
  special.push_back(6.1e-5);  // an odd number: ends in the middle of a vector
  for (const DType from : kDTypes) {
    std::vector<double> values;
    for (const double v : special) {
      const bool fits = is_floating(from) || (v == std::trunc(v) && std::abs(v) < 9e18 &&
                                              (from == DType::kI64 || std::abs(v) < 2147483648.0) &&
                                              (from != DType::kU8 || (v >= 0 && v < 256)));
      if (fits) values.push_back(cast_of(v, DType::kF64, from));
    }
    const Tensor x = test::from_doubles(values, {Shape{static_cast<int64_t>(values.size())}, from});
    for (const DType into : kDTypes) {
      const std::vector<double> got = test::to_doubles(to(x, into));
      for (size_t k = 0; k < values.size(); ++k) {
        const double want = cast_of(values[k], from, into);
        EXPECT_TRUE(got[k] == want || (got[k] != got[k] && want != want))
            << values[k] << " from " << to_string(from) << " to " << to_string(into) << ": " << got[k] << ", not "
            << want;
      }
    }
  }
}

// In halves and in pieces larger than a thread's, and the scalar conversions of core/dtype.h say the same.
TEST(ToDType, ConvertsEveryHalfThereAndBack) {
  for (const DType half : {DType::kF16, DType::kBf16}) {
    std::vector<uint16_t> bits(65536);
    std::iota(bits.begin(), bits.end(), uint16_t{0});
    const Tensor x = Tensor::empty({Shape{65536}, half});
    std::memcpy(x.value->data, bits.data(), x.bytes());

    const Tensor wide = to(x, DType::kF32), wider = to(x, DType::kF64);
    const Tensor back = to(wide, half), back_from_wider = to(wider, half);

    for (size_t k = 0; k < bits.size(); ++k) {
      Float16 f16;
      Bfloat16 bf16;
      f16.bits = bf16.bits = bits[k];
      const float want = half == DType::kF16 ? static_cast<float>(f16) : static_cast<float>(bf16),
                  got = wide.data<float>()[k];
      ASSERT_TRUE(std::bit_cast<uint32_t>(got) == std::bit_cast<uint32_t>(want) || (got != got && want != want)) << k;
      for (const Tensor& b : {back, back_from_wider}) {
        const uint16_t again = static_cast<const uint16_t*>(b.value->data)[k];
        ASSERT_TRUE(again == bits[k] || want != want) << k;
      }
    }
  }
}

TEST(ToDType, RoundsFloatsToHalvesAsTheScalarConversionsDo) {
  const Tensor x = Tensor::empty({Shape{200003}, DType::kF32});
  uint32_t state = 1;
  for (float& v : std::span(static_cast<float*>(x.value->data), 200003)) {
    state = state * 1664525u + 1013904223u;
    v = std::bit_cast<float>(state);
  }
  const Tensor f16 = to(x, DType::kF16), bf16 = to(x, DType::kBf16);
  for (size_t k = 0; k < 200003; ++k) {
    ASSERT_EQ(f16.data<Float16>()[k].bits, Float16(x.data<float>()[k]).bits) << x.data<float>()[k];
    ASSERT_EQ(bf16.data<Bfloat16>()[k].bits, Bfloat16(x.data<float>()[k]).bits) << x.data<float>()[k];
  }
}

TEST(ToDType, RoundsOnce) {
  // Just above the middle of two halves: f32 in between would fall on the middle, and then to the even side.
  const Tensor wide = Tensor::from<double>(
      {1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40), 1 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40)}, Shape{2});
  EXPECT_EQ(test::to_doubles(to(wide, DType::kF16))[0], 1 + std::ldexp(1.0, -10));
  EXPECT_EQ(test::to_doubles(to(wide, DType::kBf16))[1], 1 + std::ldexp(1.0, -7));
  const int64_t middle = (int64_t{257} << 54) + 1;
  EXPECT_EQ(test::to_doubles(to(Tensor::from<int64_t>({middle, -middle}, Shape{2}), DType::kBf16)),
            (std::vector<double>{std::ldexp(258, 54), -std::ldexp(258, 54)}));
}

TEST(ToDType, KeepsTheLayoutAndTheTensorItself) {
  const Tensor x = test::small_integers({Shape{2, 3, 4, 5}, DType::kF32, Layout::kNhwc}, 1);
  EXPECT_EQ(to(x, DType::kF32).value.get(), x.value.get());
  EXPECT_EQ(to(x, DType::kI32).layout(), Layout::kNhwc);
  EXPECT_TRUE(test::equal(to(to(x, DType::kI32), DType::kF32), x));
  const Tensor large = test::small_integers({Shape{5000001}, DType::kF32}, 2, 1000);
  EXPECT_TRUE(test::bitwise_equal(to(to(large, DType::kI32), DType::kF32), large));
  EXPECT_EQ(to(zeros({Shape{0, 3}, DType::kF32}), DType::kBf16).numel(), 0);
}

}  // namespace
}  // namespace plumb
