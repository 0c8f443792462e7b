// Writing pooling results. Large ones go past the caches: they would be gone before anyone reads them, and a write
// through the caches reads the memory first.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/cpu/element.h"

namespace plumb::cpu::pool {

inline constexpr int64_t kLine = 64;

/// Results of at least this many bytes are streamed.
inline constexpr size_t kStreamBytes = 16 << 20;

/// Writes one line at an address that is a multiple of kLine, past the caches.
inline void stream_line(void* to, const void* from) {
#if defined(__AVX512F__)
  _mm512_stream_si512(static_cast<__m512i*>(to), _mm512_loadu_si512(from));
#elif defined(__AVX__)
  for (int i = 0; i < 2; ++i) {
    _mm256_stream_si256(static_cast<__m256i*>(to) + i, _mm256_loadu_si256(static_cast<const __m256i*>(from) + i));
  }
#else
  for (int i = 0; i < 4; ++i) {
    _mm_stream_si128(static_cast<__m128i*>(to) + i, _mm_loadu_si128(static_cast<const __m128i*>(from) + i));
  }
#endif
}
/// Makes streamed lines visible to other threads.
inline void stream_fence() { _mm_sfence(); }

/// How many elements, at most `most`, to write at `to` in one go: when streaming, up to the next line.
template <class T>
int64_t run_length(const T* to, int64_t most, bool streamed) {
  const auto past_line = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % kLine);
  if (!streamed || past_line == 0) return most;
  return std::min<int64_t>(most, (kLine - past_line + static_cast<int64_t>(sizeof(T)) - 1) / static_cast<int64_t>(sizeof(T)));
}

/// Writes n elements; whole lines are streamed if asked for.
template <class T>
void write(T* to, const T* from, int64_t n, bool streamed) {
  constexpr int64_t per_line = kLine / static_cast<int64_t>(sizeof(T));
  int64_t i = 0;
  if (streamed && reinterpret_cast<uintptr_t>(to) % kLine == 0) {
    for (; i + per_line <= n; i += per_line) stream_line(to + i, from + i);
  }
  for (; i < n; ++i) to[i] = from[i];
}

}  // namespace plumb::cpu::pool
