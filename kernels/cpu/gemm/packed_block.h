// The innermost part of a product of packed panels: blocks of the result that stay in registers.
//
// A panel is made of words of 32 bits. In f32 one is a number; in bf16 it is those of two neighbouring depths, which
// one instruction multiplies and adds in f32, where the processor has it.
#pragma once

#include "core/dtype.h"
#include "kernels/cpu/gemm/ahead.h"
#include "kernels/cpu/range.h"
#include "kernels/cpu/simd.h"

namespace plumb::cpu {

/// A block of c in registers, beside a row of b and an element of a, has so many rows and columns.
inline constexpr int kBlockVectors = 2, kBlockRows = (simd::kRegisters - kBlockVectors - 1) / kBlockVectors;
inline constexpr int64_t kBlockColumns = kBlockVectors * simd::kLanes;

/// Depths in a word of a panel.
template <class T>
inline constexpr int64_t kInWord = int64_t{sizeof(float) / sizeof(T)};

/// Whether there are products of such words. Of bf16 there are where one instruction multiplies them.
template <class T>
inline constexpr bool kMultiplies = true;
#if !defined(__AVX512BF16__)
template <>
inline constexpr bool kMultiplies<Bfloat16> = false;
#endif

/// make.operator()<T>() for the T that has this dtype, if there are products of its words; else nothing.
template <class Make>
auto dispatch_words(DType dtype, const Make& make) -> decltype(make.template operator()<float>()) {
  if (dtype == DType::kF32) return make.template operator()<float>();
  if constexpr (kMultiplies<Bfloat16>) {
    if (dtype == DType::kBf16) return make.template operator()<Bfloat16>();
  }
  return {};
}

/// Where rows of c go, and what happens to them there.
struct BlocksOfC {
  float* sums;  ///< these columns in f32, where c has sums from one part of the depth to the next
  void* c;      ///< where complete sums go: as floats, to where sums are, or in bf16, if that is what words are
                ///< of; null if none are complete
  const int64_t *sums_at, *at;  ///< of each row its offset in both
  int64_t rows;
  Range columns;            ///< at most kBlockColumns
  const float* bias;        ///< of all columns, or null
  bool first, last;         ///< whether c has no sums yet; whether these complete them
  bool relu;                ///< of complete sums
  Ahead* ahead = nullptr;   ///< what is fetched meanwhile, or null
  bool whole_sums = false;  ///< whether sums are these columns' alone, and have room for whole blocks
  bool stream = false;      ///< whether complete sums are written past the caches, where they fill lines
};

/// Rows of a as they lie in memory, for so many words: up to so many rows, as many pointers as fit beside the others
/// in a processor's registers.
inline constexpr int kGatheredRows = kBlockRows < 8 ? kBlockRows : 8;
struct Stretch {
  const float* row[kGatheredRows];  ///< all null if these are zeros
  int64_t depth;
};

/// Adds to c the product of a, whose panels of kBlockRows rows lie one behind the other, and of one panel of b, which
/// has kBlockColumns columns. A panel has its lines side by side in each of `depth` words. T is what these hold: float,
/// or Bfloat16 if kMultiplies<Bfloat16>.
template <class T>
void multiply_panel(int64_t depth, const float* a, const float* b, const BlocksOfC& to);

/// The same for rows of a that are gathered: of each kGatheredRows rows the stretches, which together are `depth` long.
template <class T>
void multiply_gathered(int64_t depth, const Stretch* a, const float* b, const BlocksOfC& to);

}  // namespace plumb::cpu
