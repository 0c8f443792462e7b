// Counter-based random numbers: the same seed gives the same bits on every machine, device and number of threads.
// Numbers are made of them in f64; by what the compiler and the C library round, normal ones may differ in the last
// place.
#pragma once

#include <array>
#include <cstdint>

#include "dtype.h"
#include "tensor.h"

namespace plumb {

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC'11). Four 32-bit numbers
/// a counter; this is the only generator.
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
  /// The key of the next round.
  static constexpr void next_key(uint32_t& k0, uint32_t& k1) {
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  /// The four numbers of a counter in a stream; streams of one key are as good as keys of their own.
  static constexpr std::array<uint32_t, 4> block(uint64_t key, uint64_t counter, uint64_t stream) {
    uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
    uint32_t c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int i = 0; i < kRounds; ++i, next_key(k0, k1)) round(c0, c1, c2, c3, k0, k1);
    return {c0, c1, c2, c3};
  }
  /// A float in [0, 1) from the upper 24 bits.
  static constexpr float unit(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }
};

namespace detail {
/// Fills memory with numbers from U[low, high), rounded to the dtype; integers get whole numbers from
/// [low, high], which lie within 32 bits.
void fill_uniform(void* data, DType dtype, int64_t count, double low, double high, uint64_t seed);
/// Fills memory with numbers from N(mean, deviation^2), by Box-Muller.
void fill_normal(void* data, DType dtype, int64_t count, double mean, double deviation, uint64_t seed);
}  // namespace detail

/// A tensor of numbers as fill_uniform gives them, in the order of memory, on the thread's device (DeviceScope): the
/// same numbers on each.
Tensor uniform(const TensorSpec& spec, double low, double high, uint64_t seed);
/// The same for numbers from N(mean, deviation^2).
Tensor normal(const TensorSpec& spec, double mean, double deviation, uint64_t seed);

}  // namespace plumb
