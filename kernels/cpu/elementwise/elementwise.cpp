#include "kernels/cpu/elementwise/elementwise.h"

#include "kernels/cpu/cache.h"
#include "kernels/cpu/nontemporal.h"

namespace plumb::cpu {
namespace {

class ElementwiseKernel final : public Kernel {
 public:
  using Loop = StridedLoop<kMaxOperands>;
  ElementwiseKernel(const RowFunction& f, const Loop& loop, size_t element_bytes)
      : Kernel("plumb:elementwise"), f_(f), loop_(loop), bytes_(static_cast<int64_t>(element_bytes)) {
    // With an extent of 1 the stride does not matter; use 1, which every function has a row for.
    bool dense = true;
    for (size_t k = 0; k < kMaxOperands; ++k) stride_[k] = loop_.extent[0] == 1 ? 1 : loop_.stride[k][0];
    for (size_t k = 0; k + 1 < f.inputs; ++k) dense &= stride_[k] == 1;
    const int64_t last = stride_[f.inputs - 1];
    row_ = dense && last == 1 ? f.dense : (dense && last == 0 ? f.last_constant : f.any);
    const int64_t row_bytes = loop_.extent[0] * bytes_;
    streams_ = loop_.rows() * row_bytes >= nontemporal_bytes && row_bytes >= kStageBytes;
    fetches_ = bytes_ == 2 && loop_.rows() * row_bytes >= l2_bytes() / 2 && row_bytes >= kStageBytes;
    // Computed here, not in run: a division takes as long as an op on one element.
    grain_ = kGrainBytes / (loop_.rank == 1 ? bytes_ : std::max(row_bytes, bytes_));
  }
  [[gnu::aligned(64)]] void run(const Launch& l) const override {
    const int64_t width = loop_.extent[0];
    if (loop_.rank == 1) {
      parallel_for(width, grain_, 64, [&](int64_t begin, int64_t end) {
        std::array<int64_t, kMaxOperands> at;
        for (size_t k = 0; k < kMaxOperands; ++k) at[k] = begin * stride_[k];
        run_row(l, begin, at, end - begin);
        if (streams_) nontemporal_fence();
      });
      return;
    }
    parallel_for(loop_.rows(), grain_, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) run_row(l, row * width, loop_.row_offsets(row), width);
      if (streams_) nontemporal_fence();
    });
  }

 private:
  void run_row(const Launch& l, int64_t out_at, const std::array<int64_t, kMaxOperands>& at, int64_t n) const {
    const void* in[kMaxOperands];
    for (size_t k = 0; k < f_.inputs; ++k) in[k] = static_cast<const char*>(l.in[k]) + at[k] * bytes_;
    auto* out = static_cast<uint8_t*>(l.out[0]) + out_at * bytes_;
    if (streams_) return stream_row(in, out, n);
    fetches_ ? fetch_row(in, out, n) : row_(f_.op.data(), out, in, stride_.data(), n);
  }
  bool is_fetched(size_t k) const { return stride_[k] == 1 && !(f_.unread >> k & 1); }
  // Fetches the inputs of what follows. Functions of bf16 take so long for a line that the processor by itself does not
  // look far enough ahead.
  void fetch_row(const void** in, uint8_t* out, int64_t n) const {
    constexpr int64_t kLine = 64;
    for (int64_t left = n, now; left > 0; left -= now, out += now * bytes_) {
      now = std::min(left, kPieceBytes / bytes_);
      for (size_t k = 0; k < f_.inputs; ++k) {
        for (int64_t i = 0; is_fetched(k) && i < kPieceBytes; i += kLine) simd::fetch<2>(in[k], kStageBytes + i);
      }
      row_(f_.op.data(), out, in, stride_.data(), now);
      for (size_t k = 0; k < f_.inputs; ++k) in[k] = static_cast<const uint8_t*>(in[k]) + now * stride_[k] * bytes_;
    }
  }
  // Writes large results past the caches through a small buffer. Writing one piece prefetches the inputs of the next.
  void stream_row(const void** in, uint8_t* out, int64_t n) const {
    alignas(64) uint8_t stage[kPieceBytes];
    for (int64_t left = n, now; left > 0; left -= now) {
      now = std::min(left, kPieceBytes / bytes_);
      row_(f_.op.data(), stage, in, stride_.data(), now);
      Source dense[kMaxOperands];
      size_t count = 0;
      for (size_t k = 0; k < f_.inputs; ++k) {
        in[k] = static_cast<const uint8_t*>(in[k]) + now * stride_[k] * bytes_;
        const auto is_it = [&](const Source& other) { return other.data == in[k]; };
        if (is_fetched(k) && std::none_of(dense, dense + count, is_it)) dense[count++] = {in[k]};
      }
      copy_nontemporal(out, stage, now * bytes_, std::span(dense, count), 0);
      out += now * bytes_;
    }
  }
  RowFunction f_;
  Loop loop_;
  int64_t bytes_, grain_;  // the least that one thread takes: elements of one row, or rows
  std::array<int64_t, kMaxOperands> stride_;
  Row row_;
  bool streams_, fetches_;
};

}  // namespace

std::unique_ptr<Kernel> elementwise_kernel(const RowFunction& f, std::span<const TensorSpec> in,
                                           const TensorSpec& out) {
  std::array<Strides, kMaxOperands> strides;
  for (size_t k = 0; k < kMaxOperands; ++k) strides[k] = broadcast_strides(in[std::min(k, in.size() - 1)], out.shape);
  return std::make_unique<ElementwiseKernel>(f, strided_loop(out, strides), size_of(out.dtype));
}

}  // namespace plumb::cpu
