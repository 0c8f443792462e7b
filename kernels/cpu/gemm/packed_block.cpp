#include "kernels/cpu/gemm/packed_block.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace plumb::cpu {
namespace {

using simd::kLanes;
using simd::Vec;

// What words of panels hold, and how they are multiplied.
template <class T>
struct Words;
template <>
struct Words<float> {
  using Word = Vec;
  static Word load(const float* p) { return simd::load(p); }
  static Word broadcast(const float* p) { return simd::broadcast(p); }
  static void add(Vec& sum, Word x, Word y) { sum += x * y; }
};
#if defined(__AVX512BF16__)
template <>
struct Words<Bfloat16> {
  using Word = __m512bh;
  static Word load(const float* p) { return plumb::detail::load_bytes<Word>(p); }
  static Word broadcast(const float* p) {
    return std::bit_cast<Word>(_mm512_set1_epi32(plumb::detail::load_bytes<int32_t>(p)));
  }
  static void add(Vec& sum, Word x, Word y) { sum = _mm512_dpbf16_ps(sum, x, y); }
};
#endif

// One block of c.
struct Target {
  float* sums;
  void* c;
  const int64_t *sums_at, *at;
  const float* bias;  // of the block's columns, or null
  bool first, last, relu;
  RowsAhead* ahead;
};

// The sums of a block of R rows and V vectors. They start from nothing in each part of the depth, and what the parts
// before gave is added at the end: a sum over a long depth is one of short sums, and keeps its last digits.
template <class T, int R, int V>
struct Sums {
  Vec of[R][V];

  explicit Sums(const Target& to) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      const Vec start = to.first && to.bias ? simd::load(to.bias + v * kLanes) : Vec{};
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) of[r][v] = start;
    }
  }
  // Adds the products of elements of a, element(r) of row r, and a row of b.
  template <class Element>
  [[gnu::always_inline]] void add(const float* b, const Element& element) {
    typename Words<T>::Word row[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) row[v] = Words<T>::load(b + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const auto x = Words<T>::broadcast(element(r));
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) Words<T>::add(of[r][v], x, row[v]);
    }
  }
  void put(const Target& to) {
    if (!to.first) add_to(to);
    if (!to.last) return put(to.sums, to.sums_at, [](Vec y) { return y; });
    T* c = static_cast<T*>(to.c);
    to.relu ? put(c, to.at, [](Vec y) { return simd::relu(y); }) : put(c, to.at, [](Vec y) { return y; });
  }

 private:
  void add_to(const Target& to) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) of[r][v] += simd::load(to.sums + to.sums_at[r] + v * kLanes);
    }
  }
  template <class To, class Done>
  void put(To* c, const int64_t* at, const Done& done) const {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) simd::store(c + at[r] + v * kLanes, done(of[r][v]));
    }
  }
};

// A block's rows in a panel.
template <class T>
struct OfPanel {
  using Element = T;
  static constexpr int kRows = kBlockRows;
  int64_t depth;
  const float* a;
  void next() { a += depth * kBlockRows; }

  template <int R, int V>
  static void multiply(OfPanel& rows, const float* b, const Target& to) {
    Sums<T, R, V> sums(to);
    const float* a = rows.a;
    const auto add_all = [&](const auto& before_each) {
#pragma GCC unroll 2
      for (int64_t i = 0; i < rows.depth; ++i, a += kBlockRows, b += kBlockColumns) {
        before_each();
        sums.add(b, [&](int r) { return a + r; });
      }
    };
    if (to.ahead->is_done()) {
      add_all([] {});
    } else {
      RowsAhead ahead = *to.ahead;  // of its own, so that it stays in registers
      add_all([&] { simd::fetch<2>(ahead.next(), 0); });
      *to.ahead = ahead.after(rows.depth);
    }
    sums.put(to);
  }
};

// A block's rows as they lie in memory.
template <class T>
struct OfStretches {
  using Element = T;
  static constexpr int kRows = kGatheredRows;
  int64_t depth;
  const Stretch* a;
  void next() {
    for (int64_t done = 0; done < depth; ++a) done += a->depth;
  }

  template <int R, int V>
  static void multiply(OfStretches& rows, const float* b, const Target& to) {
    Sums<T, R, V> sums(to);
    const Stretch* a = rows.a;
    for (int64_t done = 0; done < rows.depth; done += a++->depth) {
      if (!a->row[0]) {
        b += a->depth * kBlockColumns;
        continue;
      }
      const float* row[R];
      for (int r = 0; r < R; ++r) row[r] = a->row[r];
#pragma GCC unroll 2
      for (int64_t i = 0; i < a->depth; ++i, b += kBlockColumns) {
        sums.add(b, [&](int r) { return row[r] + i; });
      }
    }
    sums.put(to);
  }
};

template <class Rows>
using MultiplyBlock = void (*)(Rows& rows, const float* b, const Target& to);
template <class Rows, int V, int... rows>
constexpr std::array<MultiplyBlock<Rows>, sizeof...(rows)> blocks_of(std::integer_sequence<int, rows...>) {
  return {&Rows::template multiply<rows + 1, V>...};
}
// Indexed by the number of rows - 1.
template <class Rows, int V>
constexpr auto kBlocks = blocks_of<Rows, V>(std::make_integer_sequence<int, Rows::kRows>());

// Copies n elements of each row from its place to its place.
template <class T>
void copy_rows(void* to, const int64_t* to_at, const void* from, const int64_t* from_at, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) {
    const size_t bytes = static_cast<size_t>(n) * sizeof(T);
    std::memcpy(static_cast<T*>(to) + to_at[r], static_cast<const T*>(from) + from_at[r], bytes);
  }
}

template <class Rows>
void multiply_rows(Rows a, const float* b, const BlocksOfC& blocks) {
  using T = typename Rows::Element;
  const int64_t begin = blocks.columns.begin, n = blocks.columns.size();
  const auto& multiply = n <= kLanes ? kBlocks<Rows, 1> : kBlocks<Rows, kBlockVectors>;
  float* sums = blocks.sums;
  T* c = blocks.c ? static_cast<T*>(blocks.c) + begin : nullptr;
  Target to{sums,         c,           nullptr,     nullptr, blocks.bias ? blocks.bias + begin : nullptr,
            blocks.first, blocks.last, blocks.relu, nullptr};
  // A block that reaches past the last column is a copy, of sums and then of what they become.
  const bool copied = n % kLanes != 0;
  float copy[Rows::kRows * kBlockColumns], bias[kBlockColumns];
  int64_t rows_of_copy[Rows::kRows];
  RowsAhead nothing;
  if (copied) {
    std::fill_n(copy, Rows::kRows * kBlockColumns, 0.0f);
    std::fill_n(bias, kBlockColumns, 0.0f);
    if (to.bias) std::copy_n(to.bias, n, bias), to.bias = bias;
    for (int64_t r = 0; r < Rows::kRows; ++r) rows_of_copy[r] = r * kBlockColumns;
    to.sums = copy, to.c = copy, to.sums_at = to.at = rows_of_copy;
  }
  for (int64_t i = 0; i < blocks.rows; i += Rows::kRows, a.next()) {
    const int64_t height = std::min<int64_t>(Rows::kRows, blocks.rows - i);
    const int64_t *sums_at = blocks.sums_at + i, *at = blocks.at + i;
    if (!copied) to.sums_at = sums_at, to.at = at;
    to.ahead = blocks.ahead ? &blocks.ahead->next() : &nothing;
    if (copied && !to.first) copy_rows<float>(copy, rows_of_copy, sums, sums_at, height, n);
    multiply[static_cast<size_t>(height - 1)](a, b, to);
    if (copied && to.last) copy_rows<T>(c, at, copy, rows_of_copy, height, n);
    if (copied && !to.last) copy_rows<float>(sums, sums_at, copy, rows_of_copy, height, n);
  }
}

}  // namespace

template <class T>
void multiply_panel(int64_t depth, const float* a, const float* b, const BlocksOfC& to) {
  multiply_rows(OfPanel<T>{depth, a}, b, to);
}
template <class T>
void multiply_gathered(int64_t depth, const Stretch* a, const float* b, const BlocksOfC& to) {
  multiply_rows(OfStretches<T>{depth, a}, b, to);
}

template void multiply_panel<float>(int64_t, const float*, const float*, const BlocksOfC&);
template void multiply_gathered<float>(int64_t, const Stretch*, const float*, const BlocksOfC&);
#if defined(__AVX512BF16__)
template void multiply_panel<Bfloat16>(int64_t, const float*, const float*, const BlocksOfC&);
template void multiply_gathered<Bfloat16>(int64_t, const Stretch*, const float*, const BlocksOfC&);
#endif

}  // namespace plumb::cpu
