// Where the windows over images lie, and the runs of their taps.
#pragma once

#include "kernels/cpu/conv2d/window_panels.h"

namespace plumb::cpu {

// Taps that are neighbours in memory (ImageWindows::run), or some of them; where the first of all is from a window's
// first.
struct TapRun {
  int64_t down, along, offset;  // rows, columns, elements
  Range taps;                   // of the run
};

// The runs of a range of taps.
class TapRuns {
 public:
  TapRuns(const ImageWindows& w, Range taps) {
    const int64_t run = w.run(), in_row = w.columns / w.run_columns();
    for (int64_t at = taps.begin, r = at / run; at < taps.end; ++r) {
      const int64_t down = r / in_row * w.row_step, along = r % in_row * w.column_step;
      const int64_t end = std::min(taps.end, (r + 1) * run);
      runs_[count_++] = {down, along, (down * w.width + along) * w.pixel, {at - r * run, end - r * run}};
      at = end;
    }
  }
  const TapRun* begin() const { return runs_; }
  const TapRun* end() const { return runs_ + count_; }

 private:
  TapRun runs_[std::max(kMostPackedDepth, kMostPackedColumns)];
  int64_t count_ = 0;
};

// A window's place, which goes from one to the next.
class WindowPlace {
 public:
  WindowPlace() = default;
  WindowPlace(const ImageWindows& w, int64_t i)
      : w_(&w), column_(i % w.out_width), row_(i / w.out_width % w.out_height), image_(i / w.out_width / w.out_height) {
    look();
  }
  void next() {
    at_ += w_->stride_w * w_->pixel;
    left_ += w_->stride_w;
    if (++column_ < w_->out_width) return;
    column_ = 0;
    if (++row_ == w_->out_height) row_ = 0, ++image_;
    look();
  }

  /// The offset of its first tap in the images.
  int64_t at() const { return at_; }
  bool is_inside() const {
    return top_ >= 0 && left_ >= 0 && top_ + (w_->rows - 1) * w_->row_step < w_->height &&
           left_ + (w_->columns - 1) * w_->column_step < w_->width;
  }
  // A run of taps: the offset of its first in the images, and which of them are inside.
  struct Piece {
    int64_t at;
    Range inside;
    bool contains(Range taps) const { return inside.begin <= taps.begin && taps.end <= inside.end; }
  };
  Piece piece(const TapRun& run) const {
    const int64_t wide = w_->run_columns(), y = top_ + run.down, x = left_ + run.along, at = at_ + run.offset;
    if (y < 0 || y >= w_->height) return {at, {0, 0}};
    return {
        at,
        {std::clamp<int64_t>(-x, 0, wide) * w_->channels, std::clamp<int64_t>(w_->width - x, 0, wide) * w_->channels}};
  }

 private:
  void look() {
    top_ = w_->top + row_ * w_->stride_h;
    left_ = w_->left + column_ * w_->stride_w;
    at_ = ((image_ * w_->height + top_) * w_->width + left_) * w_->pixel;
  }

  const ImageWindows* w_;
  int64_t column_, row_, image_;
  int64_t at_, top_, left_;  // of its first tap
};

// Some windows one after another, up to kMost, and `next` the one behind them.
template <int kMost>
struct WindowBlock {
  WindowPlace places[kMost];
  WindowPlace::Piece pieces[kMost];
  int64_t count;
  bool is_inside = true;

  WindowBlock(WindowPlace& next, int64_t left) : count(std::min<int64_t>(kMost, left)) {
    for (int64_t j = 0; j < count; ++j, next.next()) places[j] = next, is_inside &= next.is_inside();
  }
  void look_at(const TapRun& run) {
    for (int64_t j = 0; j < count; ++j) pieces[j] = places[j].piece(run);
  }
};

// Copies n elements; up to a vector behind them may be written.
template <class T>
void copy_elements(T* to, const T* from, int64_t n) {
  using Bits = simd::bytes::Bits<T>;
  for (; n >= simd::kLanes; n -= simd::kLanes, to += simd::kLanes, from += simd::kLanes) {
    plumb::detail::store_bytes(to, plumb::detail::load_bytes<Bits>(from));
  }
  if (n > 0) plumb::detail::store_bytes(to, simd::bytes::load<Bits>(from, n));
}

// Copies some of a window's taps.
template <class T>
void gather(T* to, const T* images, const WindowPlace& place, const TapRuns& runs) {
  if (place.is_inside()) {
    for (const TapRun& run : runs) {
      copy_elements(to, images + place.at() + run.offset + run.taps.begin, run.taps.size());
      to += run.taps.size();
    }
    return;
  }
  for (const TapRun& run : runs) {
    const WindowPlace::Piece piece = place.piece(run);
    const Range inside{std::clamp(piece.inside.begin, run.taps.begin, run.taps.end),
                       std::clamp(piece.inside.end, run.taps.begin, run.taps.end)};
    std::fill_n(to, inside.begin - run.taps.begin, T());
    copy_elements(to + inside.begin - run.taps.begin, images + piece.at + inside.begin, inside.size());
    std::fill_n(to + inside.end - run.taps.begin, run.taps.end - inside.end, T());
    to += run.taps.size();
  }
}

}  // namespace plumb::cpu
