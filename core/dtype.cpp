#include "core/dtype.h"

#include <array>
#include <cmath>

namespace plumb {
namespace {
constexpr std::array<const char*, kDTypeCount> kNames = {"f32", "f64", "f16", "bf16", "i32", "i64", "u8"};
}

const char* to_string(DType t) { return kNames[static_cast<size_t>(t)]; }

DType dtype_from_string(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return static_cast<DType>(i);
  }
  fail("dtype \"{}\" is unknown; use one of f32, f64, f16, bf16, i32, i64, u8", name);
}

Float16::Float16(float v) {
  const uint32_t u = std::bit_cast<uint32_t>(v);
  const auto sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
  const uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    bits = sign | 0x7e00u;
  } else if (magnitude >= 0x477ff000u) {  // rounds past 65504, or is infinite
    bits = sign | 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // subnormal: a multiple of 2^-24, rounded to even by the addition
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    bits = sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(shifted) - 0x3f000000u);
  } else {
    const uint32_t rounded = magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u);
    bits = sign | static_cast<uint16_t>(rounded >> 13);
  }
}

Float16::operator float() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu, mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

}  // namespace plumb
