#include "kernels/cpu/gemm/amx_block.h"

#if defined(__AMX_BF16__) && defined(__AVX512BF16__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "kernels/cpu/unset.h"

namespace plumb::cpu {
namespace {

using simd::kLanes;
using simd::Vec;

// Floats of a row of a tile, rows of a tile, and floats of all its rows.
constexpr int64_t kTileRow = 16, kTileRows = 16, kTile = kTileRow * kTileRows;
static_assert(kAmxRows == 2 * kTileRows && kBlockColumns == 2 * kTileRow && kAmxDepth == kTileRow);
// Bytes from row to row of a's panels, of b's, of a block of c.
constexpr size_t kStepA = kTileRow * sizeof(float), kStepB = kBlockColumns * sizeof(float), kStepC = kStepB;

// Tiles 0 to 3 are c's, 4 and 5 a's, 6 and 7 b's; all are whole.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_of_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileShapes) == 64);

// This thread's tiles, while this is there.
class Tiles {
 public:
  Tiles() {
    static constexpr TileShapes kShapes;
    _tile_loadconfig(&kShapes);
  }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

// Adds the product of A tiles of rows, of which so many bytes lie between two, and B of columns, at kAmxDepth words of
// the depth.
template <int A, int B>
[[gnu::always_inline]] inline void add(const void* a, const void* second, size_t step, const float* b) {
  _tile_loadd(4, a, step);
  _tile_loadd(6, b, kStepB);
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (B == 2) {
    _tile_loadd(7, b + kTileRow, kStepB);
    _tile_dpbf16ps(1, 4, 7);
  }
  if constexpr (A == 2) {
    _tile_loadd(5, second, step);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (B == 2) _tile_dpbf16ps(3, 5, 7);
  }
}

// What is multiplied: whole tiles of the depth, and the last, which b has not got whole, apart.
struct Depths {
  int64_t whole;           // words
  const float* b;          // of these
  const float* b_of_rest;  // or null
};

// What was written to memory is there before a tile is loaded from it: g++'s loads of tiles do not tell that they read.
[[gnu::always_inline]] inline void finish_writes() { asm volatile("" ::: "memory"); }

// A block of c: rows of kBlockColumns floats.
template <int A, int B>
void begin(const float* c, bool with_zeros) {
  finish_writes();
  if (with_zeros) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    return;
  }
  _tile_loadd(0, c, kStepC);
  if constexpr (B == 2) _tile_loadd(1, c + kTileRow, kStepC);
  if constexpr (A == 2) _tile_loadd(2, c + kTileRows * kBlockColumns, kStepC);
  if constexpr (A == 2 && B == 2) _tile_loadd(3, c + kTileRows * kBlockColumns + kTileRow, kStepC);
}
template <int A, int B>
void store(float* c) {
  _tile_stored(0, c, kStepC);
  if constexpr (B == 2) _tile_stored(1, c + kTileRow, kStepC);
  if constexpr (A == 2) _tile_stored(2, c + kTileRows * kBlockColumns, kStepC);
  if constexpr (A == 2 && B == 2) _tile_stored(3, c + kTileRows * kBlockColumns + kTileRow, kStepC);
}

// What is fetched while a block is multiplied: the sums of the next one, of which some lines come with each tile of the
// depth, and lines of what is packed next.
struct Fetched {
  const float* sums;
  RowsAhead& ahead;
};

// Adds a block's products to its sums, if these do not begin with them.
template <int A, int B>
void sum_block(float* c, bool first, const float* a, const Depths& depths, const Fetched& fetched) {
  constexpr int64_t kLinesAhead = 4, kLine = 16, kLinesOfSums = kAmxRows * kBlockColumns / kLine / 8;
  begin<A, B>(c, first);
  const float *b = depths.b, *sums = fetched.sums;
  for (int64_t d = 0; d < depths.whole; d += kAmxDepth, a += kAmxRows * kTileRow, b += kAmxDepth * kBlockColumns) {
    for (int64_t i = 0; i < kLinesOfSums; ++i) __builtin_prefetch(sums + i * kLine, 1, 3);
    sums += kLinesOfSums * kLine;
    if (!fetched.ahead.is_done()) {
      for (int64_t i = 0; i < kLinesAhead; ++i) simd::fetch<2>(fetched.ahead.next(), 0);
      fetched.ahead = fetched.ahead.after(kLinesAhead);
    }
    add<A, B>(a, a + kTile, kStepA, b);
  }
  if (depths.b_of_rest) add<A, B>(a, a + kTile, kStepA, depths.b_of_rest);
  store<A, B>(c);
}
using SumBlock = void (*)(float*, bool, const float*, const Depths&, const Fetched&);

// Two vectors, rounded to nearest even: as Bfloat16(float) does but for numbers below 2^-126, which AMX does not know
// either, and for the bits of NaN.
__m512i narrow(Vec first, Vec second) {
  return std::bit_cast<__m512i>(_mm512_cvtne2ps_pbh(std::bit_cast<__m512>(second), std::bit_cast<__m512>(first)));
}

// Whether a row goes past the caches: whole lines do.
bool is_streamed(const Bfloat16* c, int64_t n, bool stream) {
  return stream && n == kBlockColumns && reinterpret_cast<uintptr_t>(c) % (kBlockColumns * sizeof(*c)) == 0;
}

// Completes a row of sums. Of n columns, those of both vectors unless they are fewer.
void complete(Bfloat16* c, const float* sums, int64_t n, const Vec* bias, bool relu, bool stream) {
  Vec y[kBlockVectors];
  for (int v = 0; v < kBlockVectors; ++v) {
    y[v] = simd::load(sums + v * kLanes) + bias[v];
    if (relu) y[v] = simd::relu(y[v]);
  }
  const __m512i row = narrow(y[0], y[1]);
  if (n < kBlockColumns) return _mm512_mask_storeu_epi16(c, (uint32_t{1} << n) - 1, row);
  if (is_streamed(c, n, stream)) {
    return _mm512_stream_si512(reinterpret_cast<__m512i*>(c), row);
  }
  _mm512_storeu_si512(c, row);
}

// Complete rows of c, made of sums.
class CompleteRows {
 public:
  explicit CompleteRows(const BlocksOfC& to)
      : c_(static_cast<Bfloat16*>(to.c) + to.columns.begin), n_(to.columns.size()), relu_(to.relu), stream_(to.stream) {
    for (int v = 0; to.bias && v < kBlockVectors && v * kLanes < n_; ++v) {
      bias_[v] = simd::load(to.bias + to.columns.begin + v * kLanes, std::min(kLanes, n_ - v * kLanes));
    }
  }
  void fetch(int64_t at) const {
    if (at >= 0 && !is_streamed(c_ + at, n_, stream_)) __builtin_prefetch(c_ + at, 1, 3);
  }
  void put(int64_t at, const float* sums) const { complete(c_ + at, sums, n_, bias_, relu_, stream_); }

 private:
  Bfloat16* c_;
  int64_t n_;
  bool relu_, stream_;
  Vec bias_[kBlockVectors] = {};
};

// Puts a block's sums where they go.
void put(const float* from, const BlocksOfC& to, int64_t first_row, int64_t rows) {
  const int64_t *at = to.at + first_row, *sums_at = to.sums_at + first_row;
  if (to.last) {
    const CompleteRows c(to);
    for (int64_t r = 0; r < rows; ++r) c.put(at[r], from + r * kBlockColumns);
    return;
  }
  const int64_t n = to.columns.size();
  for (int64_t r = 0; r < rows; ++r) std::copy_n(from + r * kBlockColumns, n, to.sums + sums_at[r]);
}
// Takes the sums of the parts before.
void take(float* block, const BlocksOfC& from, int64_t first_row, int64_t rows) {
  const int64_t n = from.columns.size(), *at = from.sums_at + first_row;
  for (int64_t r = 0; r < rows; ++r) std::copy_n(from.sums + at[r], n, block + r * kBlockColumns);
}

// The rows of a block whose sums are complete, but for those that are no rows of c. They are put there while the next
// block is multiplied.
struct Waiting {
  const float* sums = nullptr;
  const int64_t* at = nullptr;
  int64_t rows = 0;
  void put(int64_t n, const CompleteRows& c) {
    for (n = std::min(n, rows), rows -= n; n > 0; --n, ++at, sums += kBlockColumns) {
      if (*at >= 0) c.put(*at, sums);
    }
  }
};

// The sums of one tile of rows or of two, from row `r` of c on, whose lines are fetched meanwhile.
template <int A, int B>
void sum_tiles(float* block, const AmxTiles& a, const float* b, const BlocksOfC& to, int64_t r, const CompleteRows& c,
               Waiting& before) {
  constexpr int64_t kRows = 2;  // in the time of one product
  const int64_t *first = a.first + r / kTileRows, *at = to.at + r;
  const Bfloat16 *one = a.at + first[0], *other = a.at + first[A - 1];
  const size_t step = static_cast<size_t>(a.step) * sizeof(Bfloat16);
  begin<A, B>(block, true);
  for (int64_t i = 0; i < a.runs; ++i, b += kAmxDepth * kBlockColumns) {
    add<A, B>(one + a.depths[i], other + a.depths[i], step, b);
    before.put(kRows, c);
    for (int64_t k = i * kRows; k < std::min((i + 1) * kRows, A * kTileRows); ++k) c.fetch(at[k]);
  }
  store<A, B>(block);
}

}  // namespace

bool has_amx() {
  constexpr long kAskPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool is_granted = syscall(SYS_arch_prctl, kAskPermission, kTileData) == 0;
  return is_granted;
}

void multiply_amx_panel(int64_t depth, const float* a, const float* b, const BlocksOfC& to) {
  const Tiles tiles;
  Unset<float, kAmxRows * kBlockColumns> room;  // of a block; what is not of c goes nowhere
  float* const block = room.data();
  alignas(64) float rest[kAmxDepth * kBlockColumns];
  const int64_t whole = depth / kAmxDepth * kAmxDepth;
  Depths depths{whole, b, nullptr};
  if (whole < depth) {
    std::fill(std::copy_n(b + whole * kBlockColumns, (depth - whole) * kBlockColumns, rest), std::end(rest), 0.0f);
    depths.b_of_rest = rest;
  }
  const bool is_narrow = to.columns.size() <= kTileRow;
  const SumBlock sum_low = is_narrow ? sum_block<1, 1> : sum_block<1, 2>;
  const SumBlock sum_high = is_narrow ? sum_block<2, 1> : sum_block<2, 2>;
  RowsAhead nothing;
  for (int64_t i = 0; i < to.rows; i += kAmxRows, a += kAmxRows * ceil_div(depth, kAmxDepth) * kAmxDepth) {
    const int64_t height = std::min(kAmxRows, to.rows - i);
    float* const sums = to.whole_sums ? to.sums + to.sums_at[i] : block;
    if (!to.whole_sums && !to.first) take(block, to, i, height);
    RowsAhead& ahead = to.ahead ? to.ahead->next() : nothing;
    const Fetched fetched{to.whole_sums ? sums + kAmxRows * kBlockColumns : block, ahead};
    (height <= kTileRows ? sum_low : sum_high)(sums, to.first, a, depths, fetched);
    if (to.last || !to.whole_sums) put(sums, to, i, height);
  }
}

void multiply_amx_rows(int64_t depth, const float* a, int64_t step, const float* b, float* c, bool first) {
  constexpr int64_t kAhead = 1024;  // bytes
  const Tiles tiles;
  begin<2, 2>(c, first);
  for (int64_t d = 0; d < depth; d += kAmxDepth, a += kAmxDepth, b += kAmxDepth * kBlockColumns) {
    for (int64_t r = 0; r < kAmxRows; ++r) simd::fetch<3>(a + r * step, kAhead);
    add<2, 2>(a, a + kTileRows * step, static_cast<size_t>(step) * sizeof(float), b);
  }
  store<2, 2>(c);
}

void multiply_amx_tiles(const AmxTiles& a, const float* b, const BlocksOfC& to) {
  const Tiles tiles;
  Unset<float, 2 * kAmxRows * kBlockColumns> room;
  const CompleteRows c(to);
  const bool is_narrow = to.columns.size() <= kTileRow;
  const auto sum_pair = is_narrow ? sum_tiles<2, 1> : sum_tiles<2, 2>;
  const auto sum_last = is_narrow ? sum_tiles<1, 1> : sum_tiles<1, 2>;
  Waiting before;
  for (int64_t r = 0; r < to.rows; r += kAmxRows) {
    float* const block = room.data() + r / kAmxRows % 2 * kAmxRows * kBlockColumns;
    const int64_t rows = std::min(kAmxRows, to.rows - r);
    (rows == kAmxRows ? sum_pair : sum_last)(block, a, b, to, r, c, before);
    before.put(kAmxRows, c);
    before = {block, to.at + r, rows};
  }
  before.put(kAmxRows, c);
}

}  // namespace plumb::cpu

#else

namespace plumb::cpu {

bool has_amx() { return false; }
void multiply_amx_panel(int64_t, const float*, const float*, const BlocksOfC&) {}
void multiply_amx_rows(int64_t, const float*, int64_t, const float*, float*, bool) {}
void multiply_amx_tiles(const AmxTiles&, const float*, const BlocksOfC&) {}

}  // namespace plumb::cpu

#endif
