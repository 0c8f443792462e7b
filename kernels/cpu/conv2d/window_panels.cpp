#include "kernels/cpu/conv2d/window_panels.h"

#include <algorithm>

#include "kernels/cpu/conv2d/window_places.h"
#include "kernels/cpu/gemm/panels.h"
#include "kernels/cpu/movement/transpose_tiles.h"

namespace plumb::cpu {
namespace {

using simd::kLanes;
using simd::Vec;

// The run's taps [begin, begin + n), n <= kLanes; 0 for those outside.
Vec load_inside(const float* images, const WindowPlace::Piece& piece, int64_t begin, int64_t n) {
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
void pack_run(float* to, const float* images, const WindowPlace::Piece* pieces, int64_t count, Range taps, bool more) {
  const bool all_inside = std::all_of(pieces, pieces + count, [&](const auto& p) { return p.contains(taps); });
  for (int64_t t = taps.begin; t < taps.end; t += kLanes, to += kLanes * kBlockRows) {
    const int64_t n = std::min(kLanes, taps.end - t);
    tiles::TileRow<uint32_t> tile[kParts][kLanes] = {};
#pragma GCC unroll 4
    for (int v = 0; v < kParts; ++v) {
#pragma GCC unroll 16
      for (int64_t j = 0; j < kLanes; ++j) {
        if (v * kLanes + j >= count) break;
        const WindowPlace::Piece& piece = pieces[v * kLanes + j];
        const float* from = images + piece.at + t;
        const Vec row = !all_inside   ? load_inside(images, piece, t, n)
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
int64_t stretch(Stretch* to, const float* images, const WindowPlace::Piece* pieces, int64_t count, Range taps) {
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

}  // namespace

ImageWindows windows_of(const Shape& x, const Shape& w, const Shape& y, const Conv2dParams& p) {
  return {.height = x[2],
          .width = x[3],
          .pixel = x[1],
          .channels = w[1],
          .out_height = y[2],
          .out_width = y[3],
          .top = -p.padding[0],
          .left = -p.padding[2],
          .stride_h = p.stride[0],
          .stride_w = p.stride[1],
          .rows = w[2],
          .columns = w[3],
          .row_step = p.dilation[0],
          .column_step = p.dilation[1]};
}

// The memory of a panel holds the stretches of its rows, if these have three channels or more: a block's are at most as
// many as pixels in a part of the depth, which is half of the largest or more, or all of it.
constexpr int64_t kLeastPart = kMostPackedDepth / 2, kFloats = sizeof(Stretch) / sizeof(float),
                  kBlocks = ceil_div(kBlockRows, kGatheredRows);
static_assert(kBlocks * kFloats * ((kLeastPart - 2) / 3 + 2) <= kBlockRows * kLeastPart &&
              kBlocks * kFloats <= kBlockRows * 3);

void WindowRows::pack(float* to, Range lines, Range depths) const {
  gathers() ? find_stretches(reinterpret_cast<Stretch*>(to), lines, depths) : pack_panels(to, lines, depths);
}
void WindowRows::multiply(int64_t depth, const float* lines, const float* b, const BlocksOfC& to) const {
  gathers() ? multiply_gathered<float>(depth, reinterpret_cast<const Stretch*>(lines), b, to)
            : multiply_panel<float>(depth, lines, b, to);
}

void WindowRows::find_stretches(Stretch* to, Range lines, Range depths) const {
  const TapRuns runs(windows_, depths);
  WindowPlace place(windows_, lines.begin);
  for (int64_t i = lines.begin; i < lines.end; i += kGatheredRows) {
    WindowBlock<kGatheredRows> block(place, lines.end - i);
    for (const TapRun& run : runs) {
      if (block.is_inside) {
        for (int64_t j = 0; j < block.count; ++j) {
          to->row[j] = images_ + block.places[j].at() + run.offset + run.taps.begin;
        }
        to++->depth = run.taps.size();
        continue;
      }
      block.look_at(run);
      for (Range rest = run.taps; rest.size() > 0;)
        rest.begin += stretch(to++, images_, block.pieces, block.count, rest);
    }
  }
}

void WindowRows::pack_panels(float* to, Range lines, Range depths) const {
  const TapRuns runs(windows_, depths);
  WindowPlace place(windows_, lines.begin);
  for (int64_t i = lines.begin; i < lines.end; i += kBlockRows) {
    WindowBlock<kBlockRows> block(place, lines.end - i);
    for (const TapRun& run : runs) {
      block.look_at(run);
      pack_run(to, images_, block.pieces, block.count, run.taps, &run + 1 != runs.end());
      to += run.taps.size() * kBlockRows;
    }
  }
}

namespace {

// The taps of one window after another, in a row.
template <class T>
class TapRows {
 public:
  TapRows(const ImageWindows& windows, const T* images, Range taps, int64_t first)
      : images_(images),
        runs_(windows, taps),
        is_one_run_(runs_.begin() + 1 == runs_.end() && taps.size() % kBlockColumns == 0),
        place_(windows, first) {}

  // Those of the next window: where they lie, or copied to `row`, which a vector more may be written to.
  const T* next(T* row) {
    const TapRun& first = *runs_.begin();
    const T* from = row;
    if (const WindowPlace::Piece piece = place_.piece(first); is_one_run_ && piece.contains(first.taps)) {
      from = images_ + piece.at + first.taps.begin;
    } else {
      gather(row, images_, place_, runs_);
    }
    place_.next();
    return from;
  }

 private:
  const T* images_;
  TapRuns runs_;
  bool is_one_run_;
  WindowPlace place_;
};

constexpr int64_t kRow = kMostPackedColumns + kLanes;

}  // namespace

// All pixels from the first tap to the last one, if not too many of them lie between windows.
template <class T>
RowsAhead WindowColumns<T>::ahead(Range lines, Range depths) const {
  if (!windows_.is_dense()) return {};
  const TapRuns runs(windows_, lines);
  const int64_t last_window = std::min(count_, depths.end * kInWord<T>) - 1;
  const int64_t images = ceil_div(count_, windows_.out_height * windows_.out_width);
  const auto pixel_of = [&](int64_t window, const TapRun& run) {
    const int64_t pixel = (WindowPlace(windows_, window).at() + run.offset) / windows_.pixel;
    return std::clamp<int64_t>(pixel, 0, images * windows_.height * windows_.width);
  };
  const int64_t first = pixel_of(depths.begin * kInWord<T>, *runs.begin());
  const int64_t last = pixel_of(last_window, *(runs.end() - 1)) + windows_.run_columns();
  const bool is_part = runs.begin() + 1 == runs.end() && windows_.run_columns() == 1;
  const Range channels = is_part ? runs.begin()->taps : Range{0, windows_.channels};
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  return RowsAhead(images_ + first * windows_.pixel + channels.begin, last - first, channels.size() * kBytes,
                   windows_.pixel * kBytes);
}
template RowsAhead WindowColumns<float>::ahead(Range, Range) const;
template RowsAhead WindowColumns<Bfloat16>::ahead(Range, Range) const;

template <>
void WindowColumns<float>::pack(float* to, Range lines, Range depths) const {
  TapRows<float> rows(windows_, images_, lines, depths.begin);
  float row[kRow] = {};
  for (int64_t i = depths.begin; i < depths.end; ++i, to += kBlockColumns) {
    const float* from = rows.next(row);
    for (int64_t at = 0; at < lines.size(); at += kBlockColumns) {
      for (int v = 0; v < kBlockVectors; ++v) {
        simd::store(to + at * depths.size() + v * kLanes, simd::load(from + at + v * kLanes));
      }
    }
  }
}

template <>
void WindowColumns<Bfloat16>::pack(float* to, Range lines, Range depths) const {
  TapRows<Bfloat16> rows(windows_, images_, lines, depths.begin * 2);
  Bfloat16 even[kRow] = {}, odd[kRow] = {};
  for (int64_t i = depths.begin; i < depths.end; ++i, to += kBlockColumns) {
    const Bfloat16* first = rows.next(even);
    if (i * 2 + 1 == count_) std::fill_n(odd, kRow, Bfloat16());
    const Bfloat16* second = i * 2 + 1 < count_ ? rows.next(odd) : odd;
    for (int64_t at = 0; at < lines.size(); at += kBlockColumns) {
      for (int v = 0; v < kBlockVectors; ++v) {
        const int64_t column = at + v * kLanes;
        const auto part = [&](const Bfloat16* row) {
          return plumb::detail::load_bytes<simd::bytes::U16>(row + column);
        };
        simd::store(to + at * depths.size() + v * kLanes, pairs_of(part(first), part(second)));
      }
    }
  }
}

}  // namespace plumb::cpu
