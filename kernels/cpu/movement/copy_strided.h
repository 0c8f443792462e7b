// Kernels that move elements unchanged: permute, slice, and what they share with pad and concat.
#pragma once

#include "kernels/compute.h"
#include "kernels/cpu/nontemporal.h"
#include "kernels/cpu/offer.h"
#include "kernels/cpu/strided.h"

namespace plumb::cpu {

using detail::dispatch_size;

/// Copies `rows` runs of `bytes` bytes each; the steps between runs are in bytes, too. Short runs cost a few
/// instructions each.
void copy_rows(uint8_t* to, int64_t to_step, const uint8_t* from, int64_t from_step, int64_t bytes, int64_t rows);

/// The same past the caches (nontemporal.h), for runs of some kilobytes.
void copy_rows_nontemporal(uint8_t* to, int64_t to_step, const uint8_t* from, int64_t from_step, int64_t bytes,
                           int64_t rows);

/// Runs of this many bytes are written past the caches by themselves.
inline constexpr int64_t kLongRun = 2 << 10;

/// Writes the n elements of y, which consist of runs of `run` elements, on all threads. write(begin, end, to, copy)
/// must write the elements [begin, end) to `to` by `copy`, which is copy_rows or copy_rows_nontemporal.
template <class T, class Write>
void parallel_write_rows(T* y, int64_t n, int64_t run, const Write& write) {
  constexpr int64_t kSize = sizeof(T);
  const bool streams = n * kSize >= nontemporal_bytes && run * kSize >= kLongRun;  // short runs would be staged
  parallel_for(n, kGrainBytes / kSize, 64, [&](int64_t begin, int64_t end) {
    if (!streams) return write(begin, end, y + begin, copy_rows);
    write(begin, end, y + begin, copy_rows_nontemporal);
    nontemporal_fence();
  });
}

/// The position of one row of a strided loop (a run along its dimension 0).
struct RowPlace {
  int64_t index[kMaxRank] = {};  ///< indices from dimension 1 on
  int64_t at = 0;                ///< offset in the operand
};

/// Cuts the elements [begin, end) of a strided loop into runs, in order. body(place, i, n, rows) handles the elements
/// [i, i + n) of the row at `place` and of the next rows - 1 rows along dimension 1.
template <class Body>
void for_runs(const StridedLoop<1>& loop, int64_t begin, int64_t end, const Body& body) {
  const int64_t width = loop.extent[0];
  const auto stride = [&](int d) { return loop.stride[0][static_cast<size_t>(d)]; };
  RowPlace place;
  for (int64_t d = 1, row = begin / width; d < loop.rank; ++d) {
    place.index[d] = row % loop.extent[d];
    row /= loop.extent[d];
    place.at += place.index[d] * stride(static_cast<int>(d));
  }
  const auto advance = [&](int64_t rows) {
    for (int d = 1; d < loop.rank; ++d, rows = 1) {
      place.at += rows * stride(d);
      if ((place.index[d] += rows) < loop.extent[d]) return;
      place.at -= place.index[d] * stride(d);
      place.index[d] = 0;
    }
  };
  if (const int64_t i = begin % width; i > 0) {
    const int64_t n = std::min(width - i, end - begin);
    body(place, i, n, 1);
    advance(1);
    begin += n;
  }
  for (int64_t left = (end - begin) / width, rows; left > 0; left -= rows) {
    rows = loop.rank > 1 ? std::min(left, loop.extent[1] - place.index[1]) : 1;
    body(place, 0, width, rows);
    advance(rows);
    begin += rows * width;
  }
  if (begin < end) body(place, 0, end - begin, 1);
}

/// The kernel for a loop in which x's elements are neighbours along dimension j but not along dimension 0.
std::unique_ptr<Kernel> transpose_kernel(const StridedLoop<1>& loop, int j, int64_t offset, const TensorSpec& y);
/// Offers kernels that write y from x. `loop` runs over y's memory order with x's strides; x starts at `offset`.
Offer copy_strided(const StridedLoop<1>& loop, int64_t offset, const TensorSpec& y);

}  // namespace plumb::cpu
