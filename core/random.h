// Counter-based random numbers: a seed gives the same bits on every machine, device and number of threads.
// Distributions compute in f64 from these bits: 24 for a number of a floating dtype, f64 too, so that a seed gives
// the same numbers in each; 32 for a whole number. Normal numbers may differ in the last place, since compilers and C
// libraries round differently.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "dtype.h"
#include "host_device.h"

namespace plumb {

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC'11). Gives four 32-bit
/// numbers per counter. It is the only generator.
struct Philox {
  static constexpr int kRounds = 10;
  /// One round on the four words of a counter under one key.
  static constexpr void round(uint32_t& c0, uint32_t& c1, uint32_t& c2, uint32_t& c3, uint32_t k0, uint32_t k1) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c0, p1 = uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
  }
  /// Changes the key to that of the next round.
  static constexpr void next_key(uint32_t& k0, uint32_t& k1) {
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  /// The four numbers of a counter in a stream. Streams of one key are as independent as different keys.
  static constexpr std::array<uint32_t, 4> block(uint64_t key, uint64_t counter, uint64_t stream) {
    uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
    uint32_t c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int i = 0; i < kRounds; ++i, next_key(k0, k1)) round(c0, c1, c2, c3, k0, k1);
    return {c0, c1, c2, c3};
  }
  /// A float in [0, 1), made from the upper 24 bits.
  static constexpr float unit(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }
};

namespace detail {
/// Turns the four words of a counter into numbers of a distribution.
struct Distribution {
  enum class Kind : int64_t { kUniform, kWhole, kNormal };

  double first = 0,
         range = 1;  ///< U[first, first + range), or its whole numbers; if normal, the mean and the deviation
  Kind kind = Kind::kUniform;

  PLUMB_HOST_DEVICE void numbers(const std::array<uint32_t, 4>& words, double* v) const {
    if (kind == Kind::kUniform) {
      for (int j = 0; j < 4; ++j) v[j] = first + range * unit(words, j);
      return;
    }
    if (kind == Kind::kWhole) {
      for (int j = 0; j < 4; ++j) v[j] = first + std::floor(range * (words[static_cast<size_t>(j)] * 0x1p-32));
      return;
    }
    for (int j = 0; j < 4; j += 2) {                                                             // Box-Muller
      const double u = 1.0 - unit(words, j), angle = 2 * std::numbers::pi * unit(words, j + 1);  // u: (0, 1]
      const double radius = range * std::sqrt(-2 * std::log(u));
      v[j] = first + radius * std::cos(angle);
      v[j + 1] = first + radius * std::sin(angle);
    }
  }
  /// v rounded to T.
  template <class T>
  PLUMB_HOST_DEVICE static T rounded(double v) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(v);
    } else if constexpr (std::is_same_v<T, double>) {
      return v;
    } else {
      return static_cast<T>(static_cast<float>(v));
    }
  }

 private:
  PLUMB_HOST_DEVICE static double unit(const std::array<uint32_t, 4>& words, int j) {
    return static_cast<double>(Philox::unit(words[static_cast<size_t>(j)]));
  }
};
/// U[low, high), rounded to the dtype; low alone if they are equal. For an integer dtype, the whole numbers of [low,
/// high], which must lie within 32 bits. Throws on a range that is empty or too large.
Distribution uniform_distribution(DType dtype, double low, double high);
/// N(mean, deviation^2). Throws on an integer dtype and a negative deviation.
Distribution normal_distribution(DType dtype, double mean, double deviation);

/// Fills elements begin to end; begin is a multiple of four. Element i is number i % 4 of counter i / 4.
void fill_random(void* data, DType dtype, int64_t begin, int64_t end, const Distribution& d, uint64_t seed);
inline void fill_uniform(void* data, DType dtype, int64_t count, double low, double high, uint64_t seed) {
  fill_random(data, dtype, 0, count, uniform_distribution(dtype, low, high), seed);
}
}  // namespace detail

}  // namespace plumb
