// Element types, and the two storage-only 16-bit floats.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "error.h"

namespace plumb {

/// The type of an element: floating, of 32, 64, 16 (IEEE) and 16 (bfloat16) bits, or integer.
enum class DType : uint8_t { kF32, kF64, kF16, kBf16, kI32, kI64, kU8 };
inline constexpr int kDTypeCount = 7;

/// Bytes of an element.
constexpr size_t size_of(DType t) {
  constexpr uint8_t sizes[kDTypeCount] = {4, 8, 2, 2, 4, 8, 1};
  return sizes[static_cast<int>(t)];
}
/// Whether it is f32, f64, f16 or bf16.
constexpr bool is_floating(DType t) { return t <= DType::kBf16; }
/// "f32", "f64", "f16", "bf16", "i32", "i64" or "u8".
const char* to_string(DType t);
/// The inverse of to_string; throws on an unknown name.
DType dtype_from_string(std::string_view name);

/// bfloat16: the upper half of a float, rounded to nearest even.
struct Bfloat16 {
  uint16_t bits = 0;
  Bfloat16() = default;
  constexpr explicit Bfloat16(float v) {
    uint32_t u = std::bit_cast<uint32_t>(v);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    u += 0x7fffu + ((u >> 16) & 1u);
    bits = nan ? uint16_t{0x7fc0} : static_cast<uint16_t>(u >> 16);
  }
  constexpr explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

/// IEEE binary16, stored and converted only; rounded to nearest even. Conversion has no branches, so loops vectorise.
struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  constexpr explicit Float16(float v) {
    const uint32_t u = std::bit_cast<uint32_t>(v), magnitude = u & 0x7fffffffu;
    const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    // Below the smallest normal number, the result is a multiple of 2^-24; the addition rounds to it.
    const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
    half = magnitude >= 0x477ff000u ? 0x7c00u : half;
    half = magnitude > 0x7f800000u ? 0x7e00u : half;
    bits = static_cast<uint16_t>(half | (u >> 16 & 0x8000u));
  }
  constexpr explicit operator float() const {
    const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fffu) << 13, sign = static_cast<uint32_t>(bits & 0x8000u)
                                                                                   << 16;
    const uint32_t normal = magnitude + (magnitude >= 0x0f800000u ? 0x70000000u : 0x38000000u);
    // Adds 2^-14 and subtracts it again: exact, and all intermediates are normal numbers.
    const float subnormal = std::bit_cast<float>(magnitude + 0x38800000u) - std::bit_cast<float>(0x38800000u);
    return std::bit_cast<float>((magnitude < 0x00800000u ? std::bit_cast<uint32_t>(subnormal) : normal) | sign);
  }
};

/// The dtype of a C++ type.
template <class T>
inline constexpr DType dtype_of = T::is_no_type_of_elements;
template <>
inline constexpr DType dtype_of<float> = DType::kF32;
template <>
inline constexpr DType dtype_of<double> = DType::kF64;
template <>
inline constexpr DType dtype_of<Float16> = DType::kF16;
template <>
inline constexpr DType dtype_of<Bfloat16> = DType::kBf16;
template <>
inline constexpr DType dtype_of<int32_t> = DType::kI32;
template <>
inline constexpr DType dtype_of<int64_t> = DType::kI64;
template <>
inline constexpr DType dtype_of<uint8_t> = DType::kU8;

/// Calls f.template operator()<T>() with the C++ type of t.
template <class F>
decltype(auto) dispatch_dtype(DType t, F&& f) {
  switch (t) {
    case DType::kF32: return f.template operator()<float>();
    case DType::kF64: return f.template operator()<double>();
    case DType::kF16: return f.template operator()<Float16>();
    case DType::kBf16: return f.template operator()<Bfloat16>();
    case DType::kI32: return f.template operator()<int32_t>();
    case DType::kI64: return f.template operator()<int64_t>();
    case DType::kU8: return f.template operator()<uint8_t>();
  }
  fail("dtype {} is unknown", static_cast<int>(t));
}

}  // namespace plumb
