#include "kernels/cpu/conv2d/window_panels.h"

#include <algorithm>

#include "kernels/cpu/movement/transpose_tiles.h"

namespace plumb::cpu {
namespace {

using simd::kLanes;
using simd::Vec;

// A window's place, which goes from one to the next.
class Place {
 public:
  Place() = default;
  Place(const Windows& w, int64_t i)
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

  // A run of taps: the offset of its first in the images, and which of them are inside.
  struct Piece {
    int64_t at;
    Range inside;
    bool contains(Range taps) const { return inside.begin <= taps.begin && taps.end <= inside.end; }
  };
  Piece piece(int64_t run) const {
    const int64_t wide = w_->run_columns(), in_row = w_->columns / wide, channels = w_->channels;
    const int64_t down = run / in_row * w_->row_step, along = run % in_row * w_->column_step;
    const int64_t y = top_ + down, x = left_ + along;
    const int64_t at = at_ + (down * w_->width + along) * w_->pixel;
    if (y < 0 || y >= w_->height) return {at, {0, 0}};
    return {at, {std::clamp<int64_t>(-x, 0, wide) * channels, std::clamp<int64_t>(w_->width - x, 0, wide) * channels}};
  }

 private:
  void look() {
    top_ = w_->top + row_ * w_->stride_h;
    left_ = w_->left + column_ * w_->stride_w;
    at_ = ((image_ * w_->height + top_) * w_->width + left_) * w_->pixel;
  }

  const Windows* w_;
  int64_t column_, row_, image_;
  int64_t at_, top_, left_;  // of its first tap
};

// The run's taps [begin, begin + n), n <= kLanes; 0 for those outside.
Vec load_inside(const float* images, const Place::Piece& piece, int64_t begin, int64_t n) {
  const int64_t from = std::max(begin, piece.inside.begin), to = std::min(begin + n, piece.inside.end);
  if (from >= to) return Vec{};
  if (from == begin) return simd::load(images + piece.at + begin, to - begin);
  float taps[kLanes] = {};
  std::copy_n(images + piece.at + from, to - from, taps + from - begin);
  return simd::load(taps);
}

constexpr int kParts = static_cast<int>(simd::vectors_of(kBlockRows));

// Packs a run's taps of some windows, `more` of which follow in the panel: rows are stored as whole vectors, whose rest
// the next row overwrites.
void pack_run(float* to, const float* images, const Place::Piece* pieces, int64_t count, Range taps, bool more) {
  const bool all_inside = std::all_of(pieces, pieces + count, [&](const auto& p) { return p.contains(taps); });
  for (int64_t t = taps.begin; t < taps.end; t += kLanes, to += kLanes * kBlockRows) {
    const int64_t n = std::min(kLanes, taps.end - t);
    tiles::TileRow<uint32_t> tile[kParts][kLanes] = {};
#pragma GCC unroll 4
    for (int v = 0; v < kParts; ++v) {
#pragma GCC unroll 16
      for (int64_t j = 0; j < kLanes; ++j) {
        if (v * kLanes + j >= count) break;
        const Place::Piece& piece = pieces[v * kLanes + j];
        const float* from = images + piece.at + t;
        const Vec row = !all_inside    ? load_inside(images, piece, t, n)
                        : n == kLanes ? simd::load(from)
                                      : simd::load(from, n);
        tile[v][j] = std::bit_cast<tiles::TileRow<uint32_t>>(row);
      }
      tiles::transpose_blocks<uint32_t, kLanes / 2>(tile[v]);
    }
    for (int64_t j = 0; j < n; ++j) {
      const bool is_last = !more && t + j + 1 == taps.end;
      for (int v = 0; v < kParts; ++v) {
        float* p = to + j * kBlockRows + v * kLanes;
        const Vec row = std::bit_cast<Vec>(tile[v][j]);
        (v + 1) * kLanes <= kBlockRows || !is_last ? simd::store(p, row) : simd::store(p, row, kBlockRows - v * kLanes);
      }
    }
  }
}

// In the place of what lies outside of an image.
constexpr float kZeros[kMostPackedDepth] = {};

// Writes the stretch of a run from a tap on in which each window is inside or outside of the image all along, up to the
// last tap, and returns its length.
int64_t stretch(Stretch* to, const float* images, const Place::Piece* pieces, int64_t count, Range taps) {
  int64_t end = taps.end, inside = 0;
  for (int64_t j = 0; j < count; ++j) {
    const Range& part = pieces[j].inside;
    const bool is_inside = part.begin <= taps.begin && taps.begin < part.end;
    to->row[j] = is_inside ? images + pieces[j].at + taps.begin : kZeros;
    inside += is_inside;
    if (const int64_t change = is_inside ? part.end : part.begin; change > taps.begin) end = std::min(end, change);
  }
  if (inside == 0) std::fill_n(to->row, count, nullptr);
  return to->depth = end - taps.begin;
}

// Copies n floats; up to a vector behind them may be written.
void copy_floats(float* to, const float* from, int64_t n) {
  for (; n >= kLanes; n -= kLanes, to += kLanes, from += kLanes) simd::store(to, simd::load(from));
  if (n > 0) simd::store(to, simd::load(from, n));
}

// Copies some of a window's taps.
void gather(float* to, const float* images, const Place& place, int64_t run, Range taps) {
  for (int64_t at = taps.begin, r = at / run, end; at < taps.end; ++r, to += end - at, at = end) {
    end = std::min(taps.end, (r + 1) * run);
    const Place::Piece piece = place.piece(r);
    const Range inside{std::clamp(piece.inside.begin + r * run, at, end), std::clamp(piece.inside.end + r * run, at, end)};
    std::fill_n(to, inside.begin - at, 0.0f);
    copy_floats(to + inside.begin - at, images + piece.at + inside.begin - r * run, inside.size());
    std::fill_n(to + inside.end - at, end - inside.end, 0.0f);
  }
}

}  // namespace

void WindowRows::pack(float* to, Range lines, Range depths) const {
  gathers() ? find_stretches(reinterpret_cast<Stretch*>(to), lines, depths) : pack_panels(to, lines, depths);
}
void WindowRows::multiply(int64_t depth, const float* lines, const float* b, const BlocksOfC& to) const {
  gathers() ? multiply_gathered(depth, reinterpret_cast<const Stretch*>(lines), b, to)
            : multiply_panel(depth, lines, b, to);
}

void WindowRows::find_stretches(Stretch* to, Range lines, Range depths) const {
  const int64_t run = windows_.run();
  Place place(windows_, lines.begin);
  for (int64_t i = lines.begin; i < lines.end; i += kGatheredRows) {
    const int64_t count = std::min<int64_t>(kGatheredRows, lines.end - i);
    Place places[kGatheredRows];
    for (int64_t j = 0; j < count; ++j, place.next()) places[j] = place;
    for (int64_t d = depths.begin, r = d / run; d < depths.end; ++r) {
      const int64_t end = std::min(depths.end, (r + 1) * run);
      Place::Piece pieces[kGatheredRows];
      for (int64_t j = 0; j < count; ++j) pieces[j] = places[j].piece(r);
      while (d < end) d += stretch(to++, images_, pieces, count, {d - r * run, end - r * run});
    }
  }
}

void WindowRows::pack_panels(float* to, Range lines, Range depths) const {
  const int64_t run = windows_.run();
  Place place(windows_, lines.begin);
  for (int64_t i = lines.begin; i < lines.end; i += kBlockRows, to += kBlockRows * depths.size()) {
    const int64_t count = std::min<int64_t>(kBlockRows, lines.end - i);
    Place places[kBlockRows];
    for (int64_t j = 0; j < count; ++j, place.next()) places[j] = place;
    float* at = to;
    for (int64_t d = depths.begin, r = d / run; d < depths.end; ++r) {
      const int64_t end = std::min(depths.end, (r + 1) * run);
      Place::Piece pieces[kBlockRows];
      for (int64_t j = 0; j < count; ++j) pieces[j] = places[j].piece(r);
      pack_run(at, images_, pieces, count, {d - r * run, end - r * run}, end < depths.end);
      at += (end - d) * kBlockRows;
      d = end;
    }
  }
}

void WindowColumns::pack(float* to, Range lines, Range depths) const {
  const int64_t run = windows_.run(), first = lines.begin / run;
  const Range of_first{lines.begin - first * run, lines.end - first * run};
  const bool is_one_run = lines.end <= (first + 1) * run && lines.size() % kBlockColumns == 0;
  float row[kMostPackedColumns + kLanes];
  std::fill_n(row, kMostPackedColumns, 0.0f);
  Place place(windows_, depths.begin);
  for (int64_t i = depths.begin; i < depths.end; ++i, place.next(), to += kBlockColumns) {
    const float* from = row;
    if (const Place::Piece piece = place.piece(first); is_one_run && piece.contains(of_first)) {
      from = images_ + piece.at + of_first.begin;
    } else {
      gather(row, images_, place, run, lines);
    }
    for (int64_t at = 0; at < lines.size(); at += kBlockColumns) {
      for (int v = 0; v < kBlockVectors; ++v) {
        simd::store(to + at * depths.size() + v * kLanes, simd::load(from + at + v * kLanes));
      }
    }
  }
}

}  // namespace plumb::cpu
