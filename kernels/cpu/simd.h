// Vectors of elements in f32, the type that arithmetic is done in, whatever they are stored as; and of small integers.
// Loads and stores come whole (kLanes elements) or in part (the first n, 0 <= n <= kLanes; nothing behind is touched, and
// the other lanes are zero).
#pragma once

#include <bit>
#include <cstring>

#include "core/dtype.h"
#include "kernels/cpu/winograd_vector.h"

namespace plumb::cpu::simd {

using winograd::kLanes;
using winograd::kRegisters;
using winograd::Vec;
using IntVec = int32_t __attribute__((vector_size(kLanes * sizeof(int32_t))));

namespace detail {

using U32 = uint32_t __attribute__((vector_size(kLanes * sizeof(uint32_t))));
using U16 = uint16_t __attribute__((vector_size(kLanes * sizeof(uint16_t))));
using U8 = uint8_t __attribute__((vector_size(kLanes)));

template <class V>
V load(const void* p) {
  V v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class V>
V load(const void* p, int64_t n) {
  if (n >= kLanes) return load<V>(p);
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  const auto mask = static_cast<uint16_t>((1u << n) - 1);
  if constexpr (sizeof(V) == 64) return std::bit_cast<V>(_mm512_maskz_loadu_epi32(mask, p));
  if constexpr (sizeof(V) == 32) return std::bit_cast<V>(_mm256_maskz_loadu_epi16(mask, p));
  if constexpr (sizeof(V) == 16) return std::bit_cast<V>(_mm_maskz_loadu_epi8(mask, p));
#else
  V v{};
  std::memcpy(&v, p, static_cast<size_t>(n) * sizeof(V) / kLanes);
  return v;
#endif
}
template <class V>
void store(void* p, V v) { std::memcpy(p, &v, sizeof v); }
template <class V>
void store(void* p, V v, int64_t n) {
  if (n >= kLanes) return store(p, v);
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  const auto mask = static_cast<uint16_t>((1u << n) - 1);
  if constexpr (sizeof(V) == 64) _mm512_mask_storeu_epi32(p, mask, std::bit_cast<__m512i>(v));
  if constexpr (sizeof(V) == 32) _mm256_mask_storeu_epi16(p, mask, std::bit_cast<__m256i>(v));
  if constexpr (sizeof(V) == 16) _mm_mask_storeu_epi8(p, mask, std::bit_cast<__m128i>(v));
#else
  std::memcpy(p, &v, static_cast<size_t>(n) * sizeof(V) / kLanes);
#endif
}

// How elements of a type are stored, and the way to and from vectors to compute with.
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
  static Vec widen(U16 v) { return std::bit_cast<Vec>(__builtin_convertvector(v, U32) << 16); }
  static U16 narrow(Vec v) {  // to nearest even, as Bfloat16(float)
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
  // By way of 16 bits: g++ 12 takes larger steps element by element.
  static IntVec widen(U8 v) { return __builtin_convertvector(__builtin_convertvector(v, U16), IntVec); }
  static U8 narrow(IntVec v) { return __builtin_convertvector(__builtin_convertvector(v, U16), U8); }
};
template <class T>
using Bits = typename Stored<T>::Bits;

}  // namespace detail

/// Elements at p as Vec (float, Bfloat16) or IntVec (int32_t, uint8_t).
template <class T>
auto load(const T* p) { return detail::Stored<T>::widen(detail::load<detail::Bits<T>>(p)); }
template <class T>
auto load(const T* p, int64_t n) { return detail::Stored<T>::widen(detail::load<detail::Bits<T>>(p, n)); }

/// The inverse; floats are rounded to nearest even, integers cut off.
template <class T, class V>
void store(T* p, V v) { detail::store(p, detail::Stored<T>::narrow(v)); }
template <class T, class V>
void store(T* p, V v, int64_t n) { detail::store(p, detail::Stored<T>::narrow(v), n); }

/// Stores a whole vector past the caches, for results so large that they would be gone before anyone reads them: a store
/// through the caches reads the memory first. Plain where p is not aligned for it. Ends with stream_fence().
template <class T, class V>
void stream(T* p, V v) {
  const auto bits = detail::Stored<T>::narrow(v);
  if (reinterpret_cast<uintptr_t>(p) % sizeof(bits) != 0) return detail::store(p, bits);
#if defined(__AVX512F__)
  if constexpr (sizeof(bits) == 64) return _mm512_stream_si512(reinterpret_cast<__m512i*>(p), std::bit_cast<__m512i>(bits));
#endif
#if defined(__AVX__)
  if constexpr (sizeof(bits) == 32) return _mm256_stream_si256(reinterpret_cast<__m256i*>(p), std::bit_cast<__m256i>(bits));
  if constexpr (sizeof(bits) == 16) return _mm_stream_si128(reinterpret_cast<__m128i*>(p), std::bit_cast<__m128i>(bits));
#endif
  detail::store(p, bits);
}
/// Makes the calling thread's streamed stores visible to other threads.
inline void stream_fence() {
#if defined(__AVX__)
  _mm_sfence();
#endif
}
/// Results of at least this many bytes are worth streaming.
#ifndef SB
#define SB (16<<20)
#endif
inline constexpr size_t kStreamBytes = SB;

}  // namespace plumb::cpu::simd
