// Converts one element to another dtype, in a form that compilers vectorise in loops.
#pragma once

#include <limits>
#include <type_traits>

#include "core/dtype.h"

namespace plumb::cpu {

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;

/// v rounded to odd: a float whose last bit is set if v was inexact, so that rounding it again equals rounding v once.
constexpr float narrow_odd(double v) {
  const float nearest = static_cast<float>(v);
  const auto back = static_cast<double>(nearest);
  const uint32_t bits = std::bit_cast<uint32_t>(nearest);
  const bool too_large = (back < 0 ? -back : back) > (v < 0 ? -v : v);  // turns infinity into the largest number
  const uint32_t odd = (bits - too_large) | 1u;
  return std::bit_cast<float>(back == v || v != v ? bits : odd);
}
constexpr float narrow_odd(int64_t v) {
  constexpr int64_t kExact = int64_t{1} << 53;
  if (v > -kExact && v < kExact) return narrow_odd(static_cast<double>(v));
  return narrow_odd(static_cast<double>((v >> 11) | ((v & 2047) != 0)) * 2048);
}

/// v converted to the type To, as kernels/cast.h defines.
template <class To, class From>
constexpr To convert(From v) {
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (is_half<From>) {
    return convert<To>(static_cast<float>(v));
  } else if constexpr (is_half<To>) {
    if constexpr (std::is_same_v<From, float>) {
      return To(v);
    } else if constexpr (std::is_same_v<From, uint8_t>) {
      return convert<To>(static_cast<float>(v));  // exact
    } else if constexpr (std::is_same_v<From, int64_t>) {
      return convert<To>(narrow_odd(v));
    } else {
      return convert<To>(narrow_odd(static_cast<double>(v)));
    }
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    constexpr To kLeast = std::numeric_limits<To>::min(), kMost = std::numeric_limits<To>::max();
    constexpr auto kLow = static_cast<From>(kLeast);                    // a power of two, or zero: exact
    constexpr auto kHigh = static_cast<From>(kMost / 2 + 1) * From(2);  // the smallest number that is too large
    const bool fits = v > kLow && v < kHigh;                            // false for NaN
    const To limit = v >= kHigh ? kMost : (v <= kLow ? kLeast : To(0));
    return fits ? static_cast<To>(fits ? v : From(0)) : limit;
  } else {
    return static_cast<To>(v);
  }
}

/// v converted to a dtype of Word's size, as its bits.
template <class Word>
Word bits_of(DType t, double v) {
  Word bits{};
  dispatch_dtype(t, [&]<class T>() {
    if constexpr (sizeof(T) == sizeof(Word)) bits = std::bit_cast<Word>(convert<T>(v));
  });
  return bits;
}

}  // namespace plumb::cpu
