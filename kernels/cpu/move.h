// Kernels that move elements without looking at them: permute, slice, and what they share with pad and concat.
#pragma once

#include "kernels/cpu/strided.h"
#include "kernels/kernel.h"

namespace plumb::cpu {

/// Calls f.template operator()<T>() with the unsigned integer of `bytes` bytes, the size of some dtype.
template <class F>
decltype(auto) dispatch_size(size_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    default: return f.template operator()<uint64_t>();
  }
}

/// Walks over the rows of a strided loop with one operand (runs along its dimension 0) and knows where each starts.
class RowCursor {
 public:
  RowCursor(const StridedLoop<1>& loop, int64_t row) : loop_(loop) {
    for (int d = 1; d < loop_.rank; ++d) {
      index_[d] = row % loop_.extent[d];
      row /= loop_.extent[d];
      at_ += index_[d] * stride(d);
    }
  }
  int64_t at() const { return at_; }
  int64_t index(int d) const { return index_[d]; }
  void next() {
    for (int d = 1; d < loop_.rank; ++d) {
      at_ += stride(d);
      if (++index_[d] < loop_.extent[d]) return;
      at_ -= index_[d] * stride(d);
      index_[d] = 0;
    }
  }

 private:
  int64_t stride(int d) const { return loop_.stride[0][static_cast<size_t>(d)]; }
  const StridedLoop<1>& loop_;
  int64_t index_[kMaxRank] = {};
  int64_t at_ = 0;
};

/// Offers to write y, whose memory order `loop` runs over, from the elements of x at the loop's strides plus `offset`.
void offer_move(const StridedLoop<1>& loop, int64_t offset, const TensorSpec& y, Candidates&);

}  // namespace plumb::cpu
