// Vectors of floats as wide as the processor's registers; the Winograd kernels are vectorised over channels.
#pragma once

#include <cstdint>
#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace plumb::cpu::winograd {

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
using UnalignedVec = float __attribute__((vector_size(kLanes * sizeof(float)), aligned(sizeof(float)), may_alias));

/// How many vectors hold n floats.
constexpr int64_t vectors_of(int64_t n) { return (n + kLanes - 1) / kLanes; }

inline Vec load(const float* p) { return *reinterpret_cast<const UnalignedVec*>(p); }
inline void store(float* p, Vec v) { *reinterpret_cast<UnalignedVec*>(p) = v; }

/// The first n < kLanes floats at p, and zeros; nothing behind them is touched.
inline Vec load(const float* p, int64_t n) {
#if defined(__AVX512F__)
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p);
#else
  Vec v{};
  for (int64_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
#endif
}

/// Writes the first n < kLanes floats of v.
inline void store(float* p, Vec v, int64_t n) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), v);
#else
  for (int64_t i = 0; i < n; ++i) p[i] = v[i];
#endif
}

/// Writes v past the caches if it is one whole line of them, and as store() otherwise. Ends with stream_fence().
inline void stream(float* p, Vec v) {
#if defined(__AVX512F__)
  if (reinterpret_cast<uintptr_t>(p) % sizeof(v) == 0) return _mm512_stream_ps(p, v);
#endif
  store(p, v);
}

/// max(v, 0), with NaN kept.
inline Vec relu(Vec v) { return v < Vec{} ? Vec{} : v; }

}  // namespace plumb::cpu::winograd
