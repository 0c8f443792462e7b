#include "kernels/cpu/gemm/streamed_gemm.h"

#include <algorithm>

#include "core/memory.h"
#include "kernels/cpu/gemm/amx_block.h"
#include "kernels/cpu/gemm/panels.h"
#include "kernels/cpu/gemm/skinny_gemm.h"

namespace plumb::cpu {
namespace {

// Of w's rows so many are multiplied at a time, and all of a group by the same words of the depth.
constexpr int64_t kRows = kGatheredRows, kMostRows = 32, kDepth = 1024;
constexpr int64_t kLanes = simd::kLanes;
static_assert(kMostThinRows % kBlockColumns == 0 && std::max(2 * kRows + kLanes, kAmxRows) <= kMostRows);

template <class T>
struct Streamed {
  int64_t m, n, k;
  bool bias, relu;

  // Whether w's rows are read by AMX as they lie, all but those that fill no group.
  bool is_by_amx() const { return kInWord<T> == 2 && n >= kAmxRows && words() % kAmxDepth == 0 && has_amx(); }
  int64_t group() const { return is_by_amx() ? kAmxRows : 2 * kRows; }
  int64_t panels() const { return ceil_div(m, kBlockColumns); }
  int64_t words() const { return k / kInWord<T>; }
  size_t bytes() const { return static_cast<size_t>(panels() * kBlockColumns * words()) * sizeof(float); }

  // Panels of x, one behind the other, each of all depths.
  void pack(float* to, const T* x) const {
    parallel_for(words(), kGrainBytes / (4 * m), simd::kLanes, [&](int64_t begin, int64_t end) {
      const PanelPacker<kBlockColumns, T> packer({x, 1, k, k}, {begin, end}, m, words());
      packer.pack(to + begin * kBlockColumns, {0, m});
    });
  }
  // Adds to sums, or begins them with, the product of rows of w, at some words of their depth, and of all of x: by rows
  // of w, each of the columns of a panel, panel by panel.
  void add(float* sums, const float* x, const T* w, Range rows, Range depth) const {
    const auto row = [&](int64_t r) { return reinterpret_cast<const float*>(w + (rows.begin + r) * k) + depth.begin; };
    const auto panel = [&](int64_t p) { return x + (p * words() + depth.begin) * kBlockColumns; };
    const bool is_first = depth.begin == 0;
    if (is_by_amx() && rows.size() == kAmxRows) {
      for (int64_t p = 0; p < panels(); ++p) {
        multiply_amx_rows(depth.size(), row(0), words(), panel(p), sums + p * kAmxRows * kBlockColumns, is_first);
      }
      return;
    }
    int64_t at[kRows];
    for (int64_t r = 0; r < kRows; ++r) at[r] = r * kBlockColumns;
    Stretch from{{}, depth.size()};
    for (int64_t first = 0; first < rows.size(); first += kRows) {
      const int64_t count = std::min(kRows, rows.size() - first);
      for (int64_t r = 0; r < count; ++r) from.row[r] = row(first + r);
      for (int64_t p = 0; p < panels(); ++p) {
        const int64_t lines = std::min(m - p * kBlockColumns, kBlockColumns);
        float* c = sums + (p * group() + first) * kBlockColumns;
        multiply_gathered<T>(from.depth, &from, panel(p),
                             {c, nullptr, at, at, count, {0, lines}, nullptr, is_first, false, false});
      }
    }
  }
  void multiply(T* y, const float* x, const T* w, const T* b, Range rows) const {
    alignas(64) float sums[kMostRows * kMostThinRows];
    for (int64_t d = 0; d < words(); d += kDepth) add(sums, x, w, rows, {d, std::min(d + kDepth, words())});
    for (int64_t line = 0; line < m; line += kLanes) {
      for (int64_t r = 0; r < rows.size(); r += kLanes) {
        const float* from = sums + (line / kBlockColumns * group() + r) * kBlockColumns + line % kBlockColumns;
        const int64_t first = rows.begin + r;
        put(y + line * n + first, from, b ? b + first : nullptr, std::min(kLanes, m - line),
            std::min(kLanes, rows.end - first));
      }
    }
  }
  // Completes some sums, of which rows become columns.
  void put(T* y, const float* sums, const T* b, int64_t lines, int64_t columns) const {
    tiles::TileRow<uint32_t> tile[kLanes];
#pragma GCC unroll 16
    for (int64_t i = 0; i < kLanes; ++i)
      tile[i] = plumb::detail::load_bytes<tiles::TileRow<uint32_t>>(sums + i * kBlockColumns);
    tiles::transpose_blocks<uint32_t, kLanes / 2>(tile);
    const simd::Vec of_columns = b ? simd::load(b, columns) : simd::Vec{};
    for (int64_t i = 0; i < lines; ++i) {
      const simd::Vec sum = std::bit_cast<simd::Vec>(tile[i]) + of_columns;
      simd::store(y + i * n, relu ? simd::relu(sum) : sum, columns);
    }
  }
  void run(const Launch& l) const {
    auto* packed = static_cast<float*>(l.workspace);
    pack(packed, static_cast<const T*>(l.in[0]));
    const auto *w = static_cast<const T*>(l.in[1]), *b = bias ? static_cast<const T*>(l.in[2]) : nullptr;
    const int64_t of_group = group(), groups = ceil_div(n, of_group), grain = kGrainBytes / (4 * of_group * words());
    parallel_for(groups, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        multiply(static_cast<T*>(l.out[0]), packed, w, b, {i * of_group, std::min(n, (i + 1) * of_group)});
    });
  }
};

}  // namespace

std::unique_ptr<Kernel> streamed_gemm_kernel(const TensorSpec& x, const TensorSpec& w, bool bias, bool relu) {
  if (x.shape[0] > kMostThinRows || !x.numel() || !w.numel()) return nullptr;
  return dispatch_words(x.dtype, [&]<class T>() -> std::unique_ptr<Kernel> {
    const Streamed<T> s{x.shape[0], w.shape[0], w.shape[1], bias, relu};
    if (s.k % kInWord<T> != 0) return nullptr;  // rows of w would begin in the middle of a word
    const char* const name = s.is_by_amx() ? "plumb:streamed_gemm:amx" : "plumb:streamed_gemm";
    auto kernel = make_kernel(name, [s](const Launch& l) { s.run(l); });
    kernel->info().workspace_bytes = s.bytes();
    return kernel;
  });
}

}  // namespace plumb::cpu
