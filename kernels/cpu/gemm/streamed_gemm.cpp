#include "kernels/cpu/gemm/streamed_gemm.h"

#include "core/memory.h"
#include "kernels/cpu/gemm/panels.h"
#include "kernels/cpu/gemm/skinny_gemm.h"

namespace plumb::cpu {
namespace {

// Of w's rows so many are multiplied at a time, and so many by the same words of the depth.
constexpr int64_t kRows = kGatheredRows, kTogether = 2 * kRows, kDepth = 1024;
static_assert(kMostThinRows % kBlockColumns == 0);

template <class T>
struct Streamed {
  int64_t m, n, k;
  bool bias, relu;

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
  // Some rows of w, by all of x.
  void multiply(T* y, const float* x, const T* w, const T* b, Range rows) const {
    alignas(64) float sums[kTogether * kMostThinRows];  // by rows of w, each of the columns of a panel, panel by panel
    int64_t at[kRows];
    for (int64_t r = 0; r < kRows; ++r) at[r] = r * kBlockColumns;
    for (int64_t d = 0; d < words(); d += kDepth) {
      Stretch from{{}, std::min(kDepth, words() - d)};
      for (int64_t first = 0; first < rows.size(); first += kRows) {
        const int64_t count = std::min(kRows, rows.size() - first);
        for (int64_t r = 0; r < count; ++r) {
          from.row[r] = reinterpret_cast<const float*>(w + (rows.begin + first + r) * k) + d;
        }
        for (int64_t p = 0; p < panels(); ++p) {
          const int64_t lines = std::min(m - p * kBlockColumns, kBlockColumns);
          float* c = sums + (p * kTogether + first) * kBlockColumns;
          multiply_gathered<T>(from.depth, &from, x + (p * words() + d) * kBlockColumns,
                               {c, nullptr, at, at, count, {0, lines}, nullptr, d == 0, false, false});
        }
      }
    }
    for (int64_t line = 0; line < m; ++line) {
      const float* from = sums + line / kBlockColumns * kTogether * kBlockColumns + line % kBlockColumns;
      T* to = y + line * n + rows.begin;
      for (int64_t r = 0; r < rows.size(); ++r) {
        const float sum = from[r * kBlockColumns] + (b ? static_cast<float>(b[rows.begin + r]) : 0.0f);
        to[r] = static_cast<T>(relu && sum < 0 ? 0.0f : sum);
      }
    }
  }
  void run(const Launch& l) const {
    auto* packed = static_cast<float*>(l.workspace);
    pack(packed, static_cast<const T*>(l.in[0]));
    const auto *w = static_cast<const T*>(l.in[1]), *b = bias ? static_cast<const T*>(l.in[2]) : nullptr;
    const int64_t groups = ceil_div(n, kTogether), grain = kGrainBytes / (4 * kTogether * words());
    parallel_for(groups, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        multiply(static_cast<T*>(l.out[0]), packed, w, b, {i * kTogether, std::min(n, (i + 1) * kTogether)});
    });
  }
};

}  // namespace

std::unique_ptr<Kernel> streamed_gemm_kernel(const TensorSpec& x, const TensorSpec& w, bool bias, bool relu) {
  if (x.shape[0] > kMostThinRows || !x.numel() || !w.numel()) return nullptr;
  return dispatch_words(x.dtype, [&]<class T>() -> std::unique_ptr<Kernel> {
    const Streamed<T> s{x.shape[0], w.shape[0], w.shape[1], bias, relu};
    if (s.k % kInWord<T> != 0) return nullptr;  // rows of w would begin in the middle of a word
    auto kernel = make_kernel("plumb:streamed_gemm", [s](const Launch& l) { s.run(l); });
    kernel->info().workspace_bytes = s.bytes();
    return kernel;
  });
}

}  // namespace plumb::cpu
