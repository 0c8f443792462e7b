// Hashing of plain bytes without padding, and floating-point attributes for keys.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace plumb {

/// A floating-point attribute of an op. It is compared and hashed by its bits, so that parameters are plain bytes.
struct Real {
  uint64_t bits;
  constexpr Real(double v = 0) : bits(std::bit_cast<uint64_t>(v)) {}
  constexpr operator double() const { return std::bit_cast<double>(bits); }
  bool operator==(const Real&) const = default;
};

/// True for types whose value is exactly their bytes; a kernel's parameters must be such a type.
template <class T>
inline constexpr bool is_plain_bytes = std::is_empty_v<T> ||
                                       (std::is_trivially_copyable_v<T> &&
                                        std::has_unique_object_representations_v<T> && sizeof(T) % 8 == 0);

namespace detail {

inline uint64_t mix(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

/// Hash of `words` 64-bit words. Each pair has its own constant, so that equal pairs in different places hash
/// differently.
inline uint64_t hash_words(const void* data, size_t words, uint64_t seed) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint64_t h = seed, k = 0x9E3779B97F4A7C15ull;
  for (size_t i = 0; i < words; i += 2, k += 0xC6A4A7935BD1E996ull) {
    uint64_t w[2] = {0, 0};
    std::memcpy(w, bytes + i * 8, i + 1 < words ? 16 : 8);
    h ^= mix(w[0] ^ k, w[1] ^ (0xE7037ED1A0B428DBull + seed));
  }
  return h;
}

}  // namespace detail

}  // namespace plumb
