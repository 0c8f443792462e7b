// The innermost part of a product of packed panels in bf16, in the tiles of AMX: registers of 16 rows of 64 bytes, of
// which one instruction multiplies two and adds the product to a third, in f32 (Intel's "Architecture Instruction Set
// Extensions Programming Reference", chapter 3).
//
// Panels of b are as everywhere (packed_block.h): the 16 words of one depth are a row of a tile. Those of a have
// kAmxRows lines, and of each kAmxDepth words at a time, which are a row of a tile too: the words of the first depths
// of all lines come first, then those of the next. What is missing of the last depths is zeros.
#pragma once

#include "kernels/cpu/gemm/packed_block.h"

namespace plumb::cpu {

/// Lines of a panel of a, and the depths, in words, of which a panel has a multiple.
inline constexpr int64_t kAmxRows = 32, kAmxDepth = 16;

/// Whether products of bf16 can be computed so: the program is built for AMX, and the system, which is asked once, lets
/// this process use its registers.
bool has_amx();

/// Adds to c the product of a, whose panels lie one behind the other, and of one panel of b, as multiply_panel does.
/// Only if has_amx().
void multiply_amx_panel(int64_t depth, const float* a, const float* b, const BlocksOfC& to);

/// Adds to a block of c, kAmxRows rows of kBlockColumns floats, or begins it with, the product of as many rows of a as
/// they lie in memory, `step` words apart, and of one panel of b. The depth is a multiple of kAmxDepth. Fetches what
/// follows in the rows. Only if has_amx().
void multiply_amx_rows(int64_t depth, const float* a, int64_t step, const float* b, float* c, bool first);

/// Rows of a where they lie in memory, which may overlap. Half of kAmxRows follow one another as a tile; a row has its
/// depths in runs of 2 * kAmxDepth elements.
struct AmxTiles {
  const Bfloat16* at;
  const int64_t* first;   ///< the offset of each tile's first row
  int64_t step;           ///< elements from row to row
  const int64_t* depths;  ///< the offsets of the runs in a row
  int64_t runs;
};

/// Writes c, the product of the rows of whole tiles and of one panel of b: c's rows are those whose offset in c is not
/// negative, and complete. Only if has_amx().
void multiply_amx_tiles(const AmxTiles& a, const float* b, const BlocksOfC& to);

}  // namespace plumb::cpu
