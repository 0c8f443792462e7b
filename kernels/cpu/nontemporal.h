// Writes large results past the caches, so that memory is not read before it is overwritten.
#pragma once

#include <immintrin.h>

#include <bit>
#include <cstring>
#include <span>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/unset.h"

namespace plumb::cpu {

/// Results at least this large have left the caches before they are read again. Only the main() of tests changes it, to
/// a smaller value.
inline int64_t nontemporal_bytes = 16 << 20;
/// Bytes that are written past the caches at once, while the next inputs are prefetched.
inline constexpr int64_t kStageBytes = 4 << 10;
/// The same of what costs little to begin, and is computed: no more than a core holds back until memory takes it, so
/// that it computes on meanwhile.
inline constexpr int64_t kPieceBytes = 1 << 10;

/// Copies past the caches. The copying thread must call nontemporal_fence() before other threads may read.
inline void copy_nontemporal(uint8_t* to, const uint8_t* from, int64_t bytes) {
  const int64_t head = std::min(bytes, static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) % 64));
  std::memcpy(to, from, static_cast<size_t>(head));
  int64_t i = head;
  for (; i + 64 <= bytes; i += 64) {
#if defined(__AVX512F__)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_loadu_si512(from + i));
#elif defined(__AVX__)
    for (int64_t k = i; k < i + 64; k += 32) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + k),
                          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + k)));
    }
#else
    for (int64_t k = i; k < i + 64; k += 16) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + k), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k)));
    }
#endif
  }
  std::memcpy(to + i, from + i, static_cast<size_t>(bytes - i));
}

/// An operand that is read from beginning to end: `rate` bytes for every byte of the result.
struct Source {
  const void* data;
  double rate = 1;
};

/// The same, but also prefetches the sources of the next part of the result: in each source, the bytes that belong to
/// the result's bytes from `next` on. Sources may end before that.
inline void copy_nontemporal(uint8_t* to, const uint8_t* from, int64_t bytes, std::span<const Source> sources,
                             int64_t next) {
  constexpr int64_t kPart = 256, kLine = 64;
  for (int64_t i = 0, part; i < bytes; i += part) {
    // Parts end where lines of the result do: one in two parts would be read before it is written.
    part = std::min(bytes - i, kPart - static_cast<int64_t>(reinterpret_cast<uintptr_t>(to + i) % kLine));
    for (const Source& s : sources) {
      const auto begin = static_cast<int64_t>(static_cast<double>(next + i) * s.rate);
      const auto end = static_cast<int64_t>(static_cast<double>(next + i + part) * s.rate);
      for (int64_t k = begin; k < end; k += kLine) simd::fetch(s.data, k);
    }
    copy_nontemporal(to + i, from + i, part);
  }
}

/// Writes a vector, past the caches if `to` is a multiple of its size. The neighbouring vectors must follow at once,
/// since partly written lines are slow.
template <class V>
void copy_nontemporal(float* to, V v) {
  if (reinterpret_cast<uintptr_t>(to) % sizeof(V) == 0) {
#if defined(__AVX512F__)
    if constexpr (sizeof(V) == 64) return _mm512_stream_ps(to, std::bit_cast<__m512>(v));
#elif defined(__AVX__)
    if constexpr (sizeof(V) == 32) return _mm256_stream_ps(to, std::bit_cast<__m256>(v));
#else
    if constexpr (sizeof(V) == 16) return _mm_stream_ps(to, std::bit_cast<__m128>(v));
#endif
  }
  std::memcpy(to, &v, sizeof v);
}
/// The same for a vector whose neighbours do not follow: past the caches only if it fills a whole line.
template <class V>
void stream_alone(float* to, V v) {
  constexpr size_t kLine = 64;
  if constexpr (sizeof(V) == kLine) return copy_nontemporal(to, v);
  std::memcpy(to, &v, sizeof v);
}

inline void nontemporal_fence() { _mm_sfence(); }

/// write(to) must write n elements to `to`, which is y; or, with `streams`, a buffer that is then streamed into y, if
/// they fit into it. In each source the bytes behind those of these elements are prefetched. The thread must call
/// nontemporal_fence() in the end.
template <class T, class Write>
void write_past(T* y, int64_t n, bool streams, std::span<const Source> sources, const Write& write) {
  constexpr int64_t kSize = sizeof(T), kStaged = 4 * kStageBytes / kSize;
  if (!streams || n > kStaged) return write(y);
  Unset<T, kStaged> stage;
  write(stage.data());
  copy_nontemporal(reinterpret_cast<uint8_t*>(y), reinterpret_cast<const uint8_t*>(stage.data()), n * kSize, sources,
                   n * kSize);
}

/// Writes the n elements of y on all threads. write(begin, end, to) must write the elements [begin, end) to `to`, which
/// is in y or in a small buffer of kBytes that is then streamed into y. The sources are prefetched.
template <int64_t kBytes = kStageBytes, class T, class Write>
void parallel_write(T* y, int64_t n, std::span<const Source> sources, const Write& write) {
  constexpr int64_t kSize = sizeof(T), kStaged = kBytes / kSize;
  const bool streams = n * kSize >= nontemporal_bytes;
  parallel_for(n, kGrainBytes / kSize, 64, [&](int64_t begin, int64_t end) {
    if (!streams) return write(begin, end, y + begin);
    Unset<T, kStaged> stage;
    for (int64_t next; begin < end; begin = next) {
      next = std::min(end, begin + kStaged);
      write(begin, next, stage.data());
      copy_nontemporal(reinterpret_cast<uint8_t*>(y + begin), reinterpret_cast<const uint8_t*>(stage.data()),
                       (next - begin) * kSize, sources, next * kSize);
    }
    nontemporal_fence();
  });
}
template <class T, class Write>
void parallel_write(T* y, int64_t n, const Write& write) {
  parallel_write(y, n, {}, write);
}

}  // namespace plumb::cpu
