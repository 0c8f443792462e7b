// Vectors of elements in f32, the type used for arithmetic whatever the elements are stored as; and of small integers.
// Loads and stores handle kLanes elements, or the first n (0 <= n <= kLanes): then memory past them is not touched, and
// loads set the other lanes to zero.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#if defined(__AVX__)
#include <immintrin.h>
#endif

#include "core/bytes.h"
#include "core/dtype.h"
#include "kernels/cpu/range.h"

namespace plumb::cpu::simd {

#if defined(__AVX512F__)
inline constexpr int64_t kLanes = 16;
inline constexpr int kRegisters = 32;
inline constexpr char kIsa[] = "avx512f";
#elif defined(__AVX2__)
inline constexpr int64_t kLanes = 8;
inline constexpr int kRegisters = 16;
inline constexpr char kIsa[] = "avx2";
#else
inline constexpr int64_t kLanes = 4;
inline constexpr int kRegisters = 16;
inline constexpr char kIsa[] = "sse";
#endif

using Vec = float __attribute__((vector_size(kLanes * sizeof(float))));
using IntVec = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));

/// How many vectors hold n floats.
constexpr int64_t vectors_of(int64_t n) { return ceil_div(n, kLanes); }

namespace bytes {

using U32 = uint32_t __attribute__((vector_size(kLanes * sizeof(uint32_t))));
using U16 = uint16_t __attribute__((vector_size(kLanes * sizeof(uint16_t))));
using U8 = uint8_t __attribute__((vector_size(kLanes)));

// Copies n < kLanes elements of so many bytes: by as few pieces as there are bits in n, of known sizes, where a call of
// memcpy would take longer.
template <size_t kBytes>
void copy_pieces(void* to, const void* from, int64_t n) {
  auto* y = static_cast<char*>(to);
  const auto* x = static_cast<const char*>(from);
#pragma GCC unroll 4
  for (int64_t piece = kLanes / 2; piece > 0; piece /= 2) {
    if (!(n & piece)) continue;
    std::memcpy(y, x, static_cast<size_t>(piece) * kBytes);
    y += static_cast<size_t>(piece) * kBytes;
    x += static_cast<size_t>(piece) * kBytes;
  }
}

template <class V>
V load(const void* p, int64_t n) {
  if (n >= kLanes) return plumb::detail::load_bytes<V>(p);
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  const auto mask = static_cast<uint16_t>((1u << n) - 1);
  if constexpr (sizeof(V) == 64) return std::bit_cast<V>(_mm512_maskz_loadu_epi32(mask, p));
  if constexpr (sizeof(V) == 32) return std::bit_cast<V>(_mm256_maskz_loadu_epi16(mask, p));
  if constexpr (sizeof(V) == 16) return std::bit_cast<V>(_mm_maskz_loadu_epi8(mask, p));
#else
#if defined(__AVX2__) && !defined(__AVX512F__)  // with which a vector has 16 lanes
  if constexpr (sizeof(V) == 32) {
    const auto places = std::bit_cast<__m256i>(IntVec{0, 1, 2, 3, 4, 5, 6, 7});
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(n)), places);
    return std::bit_cast<V>(_mm256_maskload_epi32(static_cast<const int32_t*>(p), mask));
  }
#endif
  V v{};
  copy_pieces<sizeof(V) / kLanes>(&v, p, n);
  return v;
#endif
}
template <class V>
void store(void* p, V v, int64_t n) {
  if (n >= kLanes) return plumb::detail::store_bytes(p, v);
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  const auto mask = static_cast<uint16_t>((1u << n) - 1);
  if constexpr (sizeof(V) == 64) _mm512_mask_storeu_epi32(p, mask, std::bit_cast<__m512i>(v));
  if constexpr (sizeof(V) == 32) _mm256_mask_storeu_epi16(p, mask, std::bit_cast<__m256i>(v));
  if constexpr (sizeof(V) == 16) _mm_mask_storeu_epi8(p, mask, std::bit_cast<__m128i>(v));
#else
  copy_pieces<sizeof(V) / kLanes>(p, &v, n);  // a store by a mask takes long on some processors
#endif
}

// How elements of a type are stored, and how they convert to and from vectors for arithmetic.
template <class T>
struct Stored;
template <>
struct Stored<float> {
  using Bits = Vec;
  static Vec widen(Vec v) { return v; }
  static Vec narrow(Vec v) { return v; }
};
template <>
struct Stored<Bfloat16> {
  using Bits = U16;
  // By one instruction, which g++ 12 does not find: it widens halves, and puts them together.
  static Vec widen(U16 v) {
#if defined(__AVX512F__)
    return std::bit_cast<Vec>(std::bit_cast<U32>(_mm512_maskz_cvtepu16_epi32(0xffff, std::bit_cast<__m256i>(v))) << 16);
#elif defined(__AVX2__)
    return std::bit_cast<Vec>(std::bit_cast<U32>(_mm256_cvtepu16_epi32(std::bit_cast<__m128i>(v))) << 16);
#else
    return std::bit_cast<Vec>(__builtin_convertvector(v, U32) << 16);
#endif
  }
  static U16 narrow(Vec v) {  // rounds to nearest even, as Bfloat16(float) does
    const U32 u = std::bit_cast<U32>(v), even = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return __builtin_convertvector(v != v ? U32{} + 0x7fc0u : even, U16);
  }
};
template <>
struct Stored<int32_t> {
  using Bits = IntVec;
  static IntVec widen(IntVec v) { return v; }
  static IntVec narrow(IntVec v) { return v; }
};
template <>
struct Stored<uint8_t> {
  using Bits = U8;
  // g++ 12 does conversions to much wider types element by element.
  static IntVec widen(U8 v) {
#if defined(__AVX512F__)
    return std::bit_cast<IntVec>(_mm512_maskz_cvtepu8_epi32(0xffff, std::bit_cast<__m128i>(v)));
#elif defined(__AVX2__)
    return std::bit_cast<IntVec>(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(std::bit_cast<int64_t>(v))));
#else
    return __builtin_convertvector(__builtin_convertvector(v, U16), IntVec);
#endif
  }
  static U8 narrow(IntVec v) {
#if defined(__AVX512F__)
    return std::bit_cast<U8>(_mm512_maskz_cvtepi32_epi8(0xffff, std::bit_cast<__m512i>(v)));
#else
    return __builtin_convertvector(__builtin_convertvector(v, U16), U8);
#endif
  }
};
template <class T>
using Bits = typename Stored<T>::Bits;

}  // namespace bytes

/// The elements at p as Vec (float, Bfloat16) or IntVec (int32_t, uint8_t).
template <class T>
auto load(const T* p) {
  return bytes::Stored<T>::widen(plumb::detail::load_bytes<bytes::Bits<T>>(p));
}
template <class T>
auto load(const T* p, int64_t n) {
  return bytes::Stored<T>::widen(bytes::load<bytes::Bits<T>>(p, n));
}

/// The element at p in every lane.
inline Vec broadcast(const float* p) { return *p - Vec{}; }
inline Vec broadcast(const Bfloat16* p) {
  using Pairs = uint16_t __attribute__((vector_size(sizeof(Vec))));
  return std::bit_cast<Vec>(std::bit_cast<bytes::U32>(p->bits - Pairs{}) & 0xffff0000u);
}

/// Stores v at p; floats are rounded to nearest even, integers truncated.
template <class T, class V>
void store(T* p, V v) {
  plumb::detail::store_bytes(p, bytes::Stored<T>::narrow(v));
}
template <class T, class V>
void store(T* p, V v, int64_t n) {
  bytes::store(p, bytes::Stored<T>::narrow(v), n);
}

/// The lanes of v in another order: lane i ^ r in the place of lane i.
template <int r, class V>
V exchanged(V v) {
  return [&]<int... i>(std::integer_sequence<int, i...>) { return __builtin_shufflevector(v, v, (i ^ r)...); }
  (std::make_integer_sequence<int, kLanes>());
}

/// max(v, 0); a NaN stays a NaN.
inline Vec relu(Vec v) { return v < Vec{} ? Vec{} : v; }

/// Prefetches the cache line of the byte that is `bytes` after p, which need not exist. Locality as in
/// __builtin_prefetch. (Always inlined: g++ 12 removes calls of a function that it thinks has no effect.)
template <int locality = 3>
[[gnu::always_inline]] inline void fetch(const void* p, int64_t bytes) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(p) + static_cast<uintptr_t>(bytes);
  __builtin_prefetch(reinterpret_cast<const void*>(at), 0, locality);
}

}  // namespace plumb::cpu::simd
