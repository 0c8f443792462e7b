#include "kernels/cpu/conv2d/window_bands.h"

#include <algorithm>

#include "kernels/cpu/cache.h"
#include "kernels/cpu/gemm/amx_block.h"
#include "kernels/cpu/gemm/pieces.h"

namespace plumb::cpu {
namespace {

constexpr int64_t kTileRows = kAmxRows / 2, kRun = 2 * kAmxDepth;

int64_t round_up(int64_t n, int64_t multiple) { return ceil_div(n, multiple) * multiple; }

}  // namespace

WindowBands::WindowBands(const ImageWindows& w, int64_t images, int64_t columns, int threads)
    : w_(w),
      images_(images),
      columns_(columns),
      team_(
          threads_for(rows() * w.out_width * w.taps() * columns, static_cast<int>(std::min<int64_t>(rows(), threads)))),
      wide_((w.out_width - 1) * w.stride_w + (w.columns - 1) * w.column_step + 1),
      // Pixels at distances of half a kilobyte share few sets of the first-level cache.
      pixel_(w.channels % 256 == 0 ? w.channels + kRun : w.channels),
      row_of_tiles_(round_up(w.out_width, kTileRows)),
      band_rows_(ceil_div(rows(), team_)) {
  // A single window has no next one: a stride, however long, is none.
  if (w.out_height == 1) w_.stride_h = 1;
  if (w.out_width == 1) w_.stride_w = 1;
  // Where windows are neighbours, rows may follow one another without a gap: between them are windows of no row.
  if (w_.stride_h == 1 && w_.stride_w == 1) row_of_tiles_ = std::min(row_of_tiles_, wide_);
  if (!exist()) return;
  while (band_rows_ > 1 && band_bytes() > l2_bytes() / 4) band_rows_ = ceil_div(band_rows_, 2);
  for (int64_t row = 0; row < w.rows; ++row) {
    for (int64_t column = 0; column < w.columns; ++column) {
      const int64_t tap = (row * w.row_step * wide_ + column * w.column_step) * pixel_;
      for (int64_t c = 0; c < w.channels; c += kRun) runs_.push_back(tap + c);
    }
  }
  Pieces pieces;
  panels_at_ = pieces.add<float>(column_panels() * kBlockColumns * depth());
  bands_at_ = pieces.add<Bfloat16>(team_ * most_pixels() * pixel_);
  firsts_at_ = pieces.add<int64_t>(team_ * most_tiles());
  places_at_ = pieces.add<int64_t>(team_ * most_tiles() * kTileRows);
  bytes_ = pieces.bytes();
}

bool WindowBands::exist() const {
  const double pixels = static_cast<double>(rows_of_image(1)) * static_cast<double>(wide_);  // that one row sees
  const double most = static_cast<double>(l2_bytes() / 4 / pixel_) / sizeof(Bfloat16);
  return w_.channels % kRun == 0 && pixels <= most;
}

int64_t WindowBands::tiles_of(int64_t rows) const {
  return ceil_div((rows - 1) * row_of_tiles_ + w_.out_width, kTileRows);
}
// Of a band.
int64_t WindowBands::most_images() const { return std::min(images_, (band_rows_ - 1) / w_.out_height + 2); }
int64_t WindowBands::most_pixels() const {
  // Each image has so many rows more than the windows' strides, or fewer.
  const int64_t beyond = rows_of_image(1) - w_.stride_h;
  const int64_t images = beyond > 0 ? most_images() : ceil_div(band_rows_, w_.out_height);
  const int64_t behind = kTileRows * w_.stride_w;  // windows of no row that end a tile
  return (band_rows_ * w_.stride_h + images * beyond) * wide_ + behind;
}
int64_t WindowBands::band_bytes() const { return most_pixels() * pixel_ * int64_t{sizeof(Bfloat16)}; }
int64_t WindowBands::most_tiles() const { return ceil_div(band_rows_ * row_of_tiles_, kTileRows) + most_images(); }

// Rows of windows, the pixels that they see, and their tiles.
class WindowBands::Band {
 public:
  Band(const WindowBands& of, void* memory, int thread)
      : of_(of),
        w_(of.w_),
        pixels_(piece_at<Bfloat16>(memory, of.bands_at_) + thread * of.most_pixels() * of.pixel_),
        firsts_(piece_at<int64_t>(memory, of.firsts_at_) + thread * of.most_tiles()),
        places_(piece_at<int64_t>(memory, of.places_at_) + thread * of.most_tiles() * kTileRows) {}

  void take(const Bfloat16* images, Range rows, const RowPlaces& places) {
    tiles_ = 0;
    for (int64_t row = rows.begin, pixels = 0, end; row < rows.end; row = end) {
      const int64_t image = row / w_.out_height;
      end = std::min(rows.end, (image + 1) * w_.out_height);
      list_tiles(pixels, {row, end}, places);
      const int64_t top = w_.top + (row - image * w_.out_height) * w_.stride_h;
      const int64_t count = of_.rows_of_image(end - row);
      copy(images + image * w_.height * w_.width * w_.pixel, {top, top + count}, pixels_ + pixels * of_.pixel_);
      pixels += count * of_.wide_;
    }
  }

  void multiply(const float* panels, const PackedResult& c) const {
    const AmxTiles a{.at = pixels_,
                     .first = firsts_,
                     .step = w_.stride_w * of_.pixel_,
                     .depths = of_.runs_.data(),
                     .runs = static_cast<int64_t>(of_.runs_.size())};
    for (int64_t j = 0; j < of_.columns_; j += kBlockColumns, panels += kBlockColumns * of_.depth()) {
      const BlocksOfC to{.sums = nullptr,
                         .c = c.c,
                         .sums_at = places_,
                         .at = places_,
                         .rows = tiles_ * kTileRows,
                         .columns = {j, std::min(of_.columns_, j + kBlockColumns)},
                         .bias = c.bias,
                         .first = true,
                         .last = true,
                         .relu = c.relu,
                         .stream = c.stream};
      multiply_amx_tiles(a, panels, to);
    }
  }

 private:
  // Rows of one image, whose first window begins at a pixel of the band.
  void list_tiles(int64_t pixel, Range rows, const RowPlaces& places) {
    const int64_t count = of_.tiles_of(rows.size());
    int64_t* const place = places_ + tiles_ * kTileRows;
    std::fill_n(place, count * kTileRows, int64_t{-1});
    for (int64_t r = 0; r < rows.size(); ++r) {
      const int64_t window = (rows.begin + r) * w_.out_width;
      places.fill(place + r * of_.row_of_tiles_, {window, window + w_.out_width});
    }
    for (int64_t i = 0; i < count * kTileRows; i += kTileRows) {
      const int64_t row = i / of_.row_of_tiles_, column = i % of_.row_of_tiles_;
      firsts_[tiles_++] = (pixel + row * w_.stride_h * of_.wide_ + column * w_.stride_w) * of_.pixel_;
    }
  }

  void copy(const Bfloat16* image, Range rows, Bfloat16* to) const {
    const Range inside{std::clamp<int64_t>(-w_.left, 0, of_.wide_),
                       std::clamp<int64_t>(w_.width - w_.left, 0, of_.wide_)};
    const int64_t row_size = of_.wide_ * of_.pixel_;
    for (int64_t y = rows.begin; y < rows.end; ++y, to += row_size) {
      if (y < 0 || y >= w_.height || inside.size() <= 0) {
        std::fill_n(to, row_size, Bfloat16());
        continue;
      }
      std::fill_n(to, inside.begin * of_.pixel_, Bfloat16());
      const Bfloat16* from = image + (y * w_.width + inside.begin + w_.left) * w_.pixel;
      Bfloat16* const pixels = to + inside.begin * of_.pixel_;
      if (of_.pixel_ == w_.pixel) {
        std::copy_n(from, inside.size() * w_.pixel, pixels);
      } else {
        for (int64_t i = 0; i < inside.size(); ++i) {
          std::copy_n(from + i * w_.pixel, w_.channels, pixels + i * of_.pixel_);
        }
      }
      std::fill(to + inside.end * of_.pixel_, to + row_size, Bfloat16());
    }
  }

  const WindowBands& of_;
  const ImageWindows& w_;
  Bfloat16* pixels_;
  int64_t *firsts_, *places_;
  int64_t tiles_ = 0;
};

void WindowBands::pack(const PanelSource& b, float* panels) const {
  parallel_team(team_, [&](int t, int team) {
    const Range mine = piece(column_panels(), t, team);
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      const Range columns{i * kBlockColumns, std::min(columns_, (i + 1) * kBlockColumns)};
      for (int64_t d = 0; d < depth(); d += kMostPackedDepth) {
        const Range depths{d, std::min(depth(), d + kMostPackedDepth)};
        b.pack(panels + (i * depth() + d) * kBlockColumns, columns, depths);
      }
    }
  });
}

void WindowBands::run(const Bfloat16* images, const PanelSource& b, const PackedResult& c, void* memory) const {
  auto* const panels = piece_at<float>(memory, panels_at_);
  pack(b, panels);
  parallel_team(team_, [&](int t, int team) {
    Band band(*this, memory, t);
    const Range mine = piece(rows(), t, team);
    const int64_t bands = ceil_div(mine.size(), band_rows_);
    for (int64_t i = 0; i < bands; ++i) {
      const Range some = piece(mine.size(), i, bands);
      band.take(images, {mine.begin + some.begin, mine.begin + some.end}, c.rows);
      band.multiply(panels, c);
    }
    if (c.stream) nontemporal_fence();
  });
}

}  // namespace plumb::cpu
