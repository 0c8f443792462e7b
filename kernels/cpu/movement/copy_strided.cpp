#include "kernels/cpu/movement/copy_strided.h"

#include <type_traits>

#include "kernels/cpu/simd.h"

namespace plumb::cpu {
namespace {

// For x and y with the same innermost dimension, or an x without a step of one element: writes y row by row.
template <class T>
std::unique_ptr<Kernel> rows_kernel(const StridedLoop<1>& loop, int64_t offset, int64_t count) {
  return make_kernel("plumb:copy_strided:rows", [=](const Launch& l) {
    constexpr int64_t kSize = sizeof(T);
    const auto* x = static_cast<const T*>(l.in[0]);
    const int64_t step = loop.stride[0][0], row_step = loop.stride[0][1];
    const auto write = [&](int64_t begin, int64_t end, T* to, const auto& copy) {
      for_runs(loop, begin, end, [&](const RowPlace& row, int64_t i, int64_t n, int64_t rows) {
        const T* from = x + (offset + row.at + i * step);
        if (step == 1) {
          copy(reinterpret_cast<uint8_t*>(to), n * kSize, reinterpret_cast<const uint8_t*>(from), row_step * kSize,
               n * kSize, rows);
        } else {
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t k = 0; k < n; ++k) to[r * n + k] = from[r * row_step + k * step];
          }
        }
        to += n * rows;
      });
    };
    parallel_write_rows(static_cast<T*>(l.out[0]), count, step == 1 ? loop.extent[0] : 1, write);
  });
}

}  // namespace

void copy_rows(uint8_t* to, int64_t to_step, const uint8_t* from, int64_t from_step, int64_t bytes, int64_t rows) {
  // How far ahead to prefetch into the second-level cache: the processor's prefetcher stops at gaps between runs.
  constexpr int64_t kAhead = 16 << 10;
  const auto copy_by = [&]<int64_t kBlock>(std::integral_constant<int64_t, kBlock>) {
    const int64_t last = bytes - kBlock, ahead = (kAhead / bytes + 1) * from_step;
    for (int64_t r = 0; r < rows; ++r, to += to_step, from += from_step) {
      if constexpr (kBlock == 64) {
        for (int64_t k = 0; k < bytes; k += 64) simd::fetch<2>(from, ahead + k);
      }
      for (int64_t k = 0; k < last; k += kBlock) std::memcpy(to + k, from + k, kBlock);
      std::memcpy(to + last, from + last, kBlock);  // overlaps the block before
    }
  };
  if (bytes > kAhead) {
    for (int64_t r = 0; r < rows; ++r) std::memcpy(to + r * to_step, from + r * from_step, static_cast<size_t>(bytes));
  } else if (bytes >= 64) {
    copy_by(std::integral_constant<int64_t, 64>());
  } else if (bytes >= 16) {
    copy_by(std::integral_constant<int64_t, 16>());
  } else if (bytes >= 4) {
    copy_by(std::integral_constant<int64_t, 4>());
  } else if (bytes > 0) {
    copy_by(std::integral_constant<int64_t, 1>());
  }
}

void copy_rows_nontemporal(uint8_t* to, int64_t to_step, const uint8_t* from, int64_t from_step, int64_t bytes,
                           int64_t rows) {
  for (int64_t r = 0; r < rows; ++r, to += to_step, from += from_step) {
    for (int64_t i = 0, now; i < bytes; i += now) {
      now = std::min(kStageBytes, bytes - i);
      const Source next{i + now < bytes ? from + i + now : from + from_step};
      copy_nontemporal(to + i, from + i, now, {&next, 1}, 0);
    }
  }
}

Offer copy_strided(const StridedLoop<1>& loop, int64_t offset, const TensorSpec& y) {
  int j = 0;  // the dimension along which x's elements are neighbours
  for (int d = loop.rank - 1; d > 0; --d) j = loop.stride[0][static_cast<size_t>(d)] == 1 ? d : j;
  const bool rows = j == 0 || loop.stride[0][0] == 1;
  return {rows ? "rows" : "transpose", Provider::kPlumbline, [=, y = y]() -> std::unique_ptr<Kernel> {
            if (!rows && y.numel() > 0) return transpose_kernel(loop, j, offset, y);
            return dispatch_size(size_of(y.dtype), [&]<class T>() { return rows_kernel<T>(loop, offset, y.numel()); });
          }};
}

}  // namespace plumb::cpu
