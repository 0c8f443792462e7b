// Transposes small matrices in registers, and larger ones tile by tile.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/cpu/simd.h"

namespace plumb::cpu {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

/// T is an unsigned integer as large as an element. A tile has this many rows and columns; a row is one vector.
template <class T>
inline constexpr int kTile = std::min(16, kVectorBytes / static_cast<int>(sizeof(T)));

namespace tiles {

template <class T>
using TileRow __attribute__((vector_size(kTile<T> * sizeof(T)))) = T;
template <class T>
using UnalignedTileRow __attribute__((vector_size(kTile<T> * sizeof(T)), aligned(1), may_alias)) = T;

// For each block of 2 D columns, swaps the right half of a's with the left half of b's.
template <class T, int D, size_t... Lane>
[[gnu::always_inline]] inline void swap_halves(TileRow<T>& a, TileRow<T>& b, std::index_sequence<Lane...>) {
  constexpr int kWidth = kTile<T>;
  const TileRow<T> old = a;
  a = __builtin_shufflevector(old, b, ((Lane & D) ? kWidth + static_cast<int>(Lane) - D : static_cast<int>(Lane))...);
  b = __builtin_shufflevector(old, b, ((Lane & D) ? kWidth + static_cast<int>(Lane) : static_cast<int>(Lane) + D)...);
}

// Transposes blocks of 2 D x 2 D by swapping their D x D quarters, then recursively down to single elements. (Always
// inlined: a call would move all rows through memory.)
template <class T, int D>
[[gnu::always_inline]] inline void transpose_blocks(TileRow<T>* row) {
  if constexpr (D > 0) {
#pragma GCC unroll 16
    for (int r = 0; r < kTile<T>; ++r) {
      if (!(r & D)) swap_halves<T, D>(row[r], row[r + D], std::make_index_sequence<kTile<T>>());
    }
    transpose_blocks<T, D / 2>(row);
  }
}

template <class T>
void transpose_tile(const T* x, const int64_t* x_rows, T* y, const int64_t* y_rows) {
  TileRow<T> row[kTile<T>];
#pragma GCC unroll 16
  for (int r = 0; r < kTile<T>; ++r) row[r] = *reinterpret_cast<const UnalignedTileRow<T>*>(x + x_rows[r]);
  transpose_blocks<T, kTile<T> / 2>(row);
#pragma GCC unroll 16
  for (int r = 0; r < kTile<T>; ++r) *reinterpret_cast<UnalignedTileRow<T>*>(y + y_rows[r]) = row[r];
}

// Whether vectors can load and store the first elements of a tile's row: their lanes are the elements, or words of
// which an element has several.
template <class T>
inline constexpr bool kHasParts = sizeof(T) >= 4 || kTile<T> == simd::kLanes;
template <class T>
inline constexpr int64_t kWords = std::max<int64_t>(1, sizeof(T) / 4);

// The same of the first I rows and J columns of x, neither more than a tile's.
template <class T>
void transpose_part(const T* x, int64_t x_step, int64_t I, T* y, int64_t y_step, int64_t J) {
  TileRow<T> row[kTile<T>];
#pragma GCC unroll 16
  for (int r = 0; r < kTile<T>; ++r) {
    row[r] = r < I ? simd::bytes::load<TileRow<T>>(x + r * x_step, J * kWords<T>) : TileRow<T>{};
  }
  transpose_blocks<T, kTile<T> / 2>(row);
#pragma GCC unroll 16
  for (int r = 0; r < kTile<T>; ++r) {
    if (r < J) simd::bytes::store(y + r * y_step, row[r], I * kWords<T>);
  }
}

// Calls body(i, j) for the corners of tiles that cover I x J; the last tile of a row or column overlaps its neighbour.
template <class T, class Body>
void for_tiles(int64_t I, int64_t J, bool j_inner, const Body& body) {
  const int64_t inner = j_inner ? J : I, outer = j_inner ? I : J;
  for (int64_t a = 0; a < outer; a += kTile<T>) {
    const int64_t at = std::min(a, outer - kTile<T>);
    for (int64_t b = 0; b < inner; b += kTile<T>) {
      const int64_t bt = std::min(b, inner - kTile<T>);
      j_inner ? body(at, bt) : body(bt, at);
    }
  }
}

// One extent is small and known at compile time, so that the loop becomes vector instructions.
template <class T, int N>
void interleave(const T* __restrict x, int64_t x_step, T* __restrict y, int64_t y_step, int64_t n) {
  if (y_step == N) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < N; ++i) y[j * N + i] = x[i * x_step + j];
    }
  } else {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < N; ++i) y[j * y_step + i] = x[i * x_step + j];
    }
  }
}
template <class T, int N>
void deinterleave(const T* __restrict x, int64_t x_step, T* __restrict y, int64_t y_step, int64_t n) {
  if (x_step == N) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < N; ++j) y[j * y_step + i] = x[i * N + j];
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < N; ++j) y[j * y_step + i] = x[i * x_step + j];
    }
  }
}

}  // namespace tiles

/// Part of an operand: its row k, for k < count, starts `rows[k]` elements after `data`.
template <class T>
struct Rows {
  T* data;
  const int64_t* rows;
  int64_t count;
};

/// Row j of y becomes column j of x; both extents are at least a tile's. While it works on x, it prefetches the same
/// part of `next` into the second-level cache, since long rows defeat the processor's own prefetcher. With `along_x` it
/// walks along the rows of x, else along those of y.
template <class T>
void transpose_tiles(const Rows<const T>& x, const Rows<T>& y, const Rows<const T>& next, bool along_x) {
  tiles::for_tiles<T>(x.count, y.count, along_x, [&](int64_t i, int64_t j) {
    if (i + kTile<T> <= next.count) {
      for (int64_t r = i; r < i + kTile<T>; ++r)
        simd::fetch<2>(next.data, (next.rows[r] + j) * static_cast<int64_t>(sizeof(T)));
    }
    tiles::transpose_tile(x.data + j, x.rows + i, y.data + i, y.rows + j);
  });
}

/// The same for any extents, element by element.
template <class T>
void transpose_elements(const Rows<const T>& x, const Rows<T>& y) {
  for (int64_t j = 0; j < y.count; ++j) {
    for (int64_t i = 0; i < x.count; ++i) y.data[y.rows[j] + i] = x.data[x.rows[i] + j];
  }
}

/// y[j * y_step + i] = x[i * x_step + j] for i < I and j < J; I or J is small.
template <class T>
void transpose_narrow(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t I, int64_t J) {
  switch (I) {
    case 2: return tiles::interleave<T, 2>(x, x_step, y, y_step, J);
    case 3: return tiles::interleave<T, 3>(x, x_step, y, y_step, J);
    case 4: return tiles::interleave<T, 4>(x, x_step, y, y_step, J);
    default: break;
  }
  switch (J) {
    case 2: return tiles::deinterleave<T, 2>(x, x_step, y, y_step, I);
    case 3: return tiles::deinterleave<T, 3>(x, x_step, y, y_step, I);
    case 4: return tiles::deinterleave<T, 4>(x, x_step, y, y_step, I);
    default: break;
  }
  if constexpr (tiles::kHasParts<T>) {
    for (int64_t j = 0; j < J; j += kTile<T>) {
      for (int64_t i = 0; i < I; i += kTile<T>) {
        tiles::transpose_part(x + i * x_step + j, x_step, std::min<int64_t>(kTile<T>, I - i), y + j * y_step + i,
                              y_step, std::min<int64_t>(kTile<T>, J - j));
      }
    }
  } else if (I < J) {
    for (int64_t i = 0; i < I; ++i) {
      for (int64_t j = 0; j < J; ++j) y[j * y_step + i] = x[i * x_step + j];
    }
  } else {
    for (int64_t j = 0; j < J; ++j) {
      for (int64_t i = 0; i < I; ++i) y[j * y_step + i] = x[i * x_step + j];
    }
  }
}

}  // namespace plumb::cpu
