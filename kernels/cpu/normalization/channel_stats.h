// Sums over every channel of a tensor (N, C, ...) and maps with one set of coefficients a channel, in any layout.
//
// In memory the tensor is (outer, C, inner). If inner is long, each channel is gathered from runs; otherwise rows of
// (C, inner), several together if they are short, are added up column by column. Either way there are `rows` by
// `columns` blocks of elements. Sums are cut into pieces of rows by the shape alone, so that their bits do not depend
// on the number of threads.
#pragma once

#include <bit>

#include "kernels/cpu/element.h"
#include "kernels/cpu/nontemporal.h"
#include "kernels/cpu/reduction/simd_reduce.h"

namespace plumb::cpu {

/// How a tensor is cut. Each sum has `pieces` times `columns` partial sums.
struct Channels {
  static constexpr int64_t kCut = kShortSum;  ///< elements of a block of a run
  static constexpr int64_t kTile = 256;       ///< columns that are processed together
  static constexpr int64_t kRuns = 32;        ///< the same for channels in runs

  int64_t numel, channels, inner, per_channel;
  bool runs;
  int64_t cuts = 1, rows, columns, tile = kTile, pieces;

  /// x is (N, C) or (N, C, H, W) and not empty.
  explicit Channels(const TensorSpec& x) : numel(x.numel()), channels(x.shape[1]), per_channel(numel / channels) {
    const DimOrder order = memory_order(x.layout, x.rank());
    inner = 1;
    for (int i = x.rank() - 1; order[i] != 1; --i) inner *= x.shape[order[i]];
    runs = inner >= 64;
    if (runs) {
      cuts = ceil_div(inner, kCut);
      rows = per_channel / inner * cuts;
      columns = channels;
      tile = cuts > 1 ? 1 : kRuns;
    } else {
      const int64_t width = channels * inner;
      columns = width * std::clamp<int64_t>(kTile / width, 1, numel / width);
      rows = ceil_div(numel, columns);
      tile = kTile / inner * inner;  // whole channels
    }
    // A power of two divides evenly among threads.
    const int64_t most = std::clamp<int64_t>(rows / (runs ? 4 : 64), 1, 64);
    pieces = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most)));
  }

  int64_t first_row(int64_t piece) const { return rows * piece / pieces; }
  /// The number of elements of each channel in a piece.
  int64_t count(int64_t piece) const {
    return elements_before(first_row(piece + 1)) - elements_before(first_row(piece));
  }
  /// Calls f(column) for each column of a channel.
  template <class F>
  void for_columns(int64_t channel, const F& f) const {
    const int64_t width = runs ? 1 : inner;
    for (int64_t first = channel * width; first < columns; first += channels * width) {
      for (int64_t i = 0; i < width; ++i) f(first + i);
    }
  }
  int64_t channel_of(int64_t column) const { return runs ? column : column / inner % channels; }
  /// The number of elements in a row of columns; the last row may be short.
  int64_t width_of(int64_t row) const { return std::min(columns, numel - row * columns); }

 private:
  int64_t elements_before(int64_t row) const {  // of each channel
    return runs ? row / cuts * inner + std::min(row % cuts * kCut, inner) : std::min(numel, row * columns) / channels;
  }
};

/// Partial sums of first(i, d, column) and of that times d over the elements i of each column; d is x[i] minus the
/// pivot of the piece and channel. A pivot is the given `mean`, or else the mean of few elements, returned in `pivots`:
/// close to the data, so that squared differences keep their digits. `pivots`, `sums`, `products` are (pieces,
/// columns).
template <class T, class First>
class ChannelSums {
 public:
  using C = Compute<T>;
  ChannelSums(const Channels& v, const T* x, const C* mean, First first, double* pivots, double* sums, double* products)
      : v_(v), x_(x), mean_(mean), first_(first), pivots_(pivots), sums_(sums), products_(products) {}
  void run() const {
    const int64_t tiles = ceil_div(v_.columns, v_.tile);
    const int64_t bytes = v_.numel / (tiles * v_.pieces) * static_cast<int64_t>(sizeof(T));
    parallel_for(tiles * v_.pieces, kGrainBytes / std::max<int64_t>(bytes, 1), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = i % tiles * v_.tile, width = std::min(v_.tile, v_.columns - column);
        if (v_.runs) {
          add_runs(i / tiles, column, width);
        } else {
          add_columns(i / tiles, column, width);
        }
      }
    });
  }

 private:
  static constexpr int64_t kRowsOfPivot = 16, kRowsOfSum = 64;
  static constexpr int64_t kBytes = sizeof(T), kLine = 64 / kBytes, kPageBytes = 4096;

  void add_runs(int64_t piece, int64_t column, int64_t width) const {
    C pivot[Channels::kRuns];
    SimdSums<C, 2> lanes[Channels::kRuns];
    std::array<double, 2> total[Channels::kRuns] = {};
    const int64_t begin = v_.first_row(piece), end = v_.first_row(piece + 1);
    int64_t added = 0;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t cut = row % v_.cuts * Channels::kCut, n = std::min(Channels::kCut, v_.inner - cut);
      for (int64_t c = 0; c < width; ++c) {
        const int64_t at = (row / v_.cuts * v_.channels + column + c) * v_.inner + cut;
        if (row == begin) pivot[c] = mean_ ? mean_[column + c] : mean_of(x_ + at, n);
        lanes[c].add(n, [&, centre = pivot[c]](int64_t i) {
          const C d = load(x_ + at + i) - centre, f = first_(at + i, d, column + c);
          return std::array<C, 2>{f, f * d};
        });
      }
      added += n;
      if (added + n <= kShortSum && row + 1 < end) continue;
      for (int64_t c = 0; c < width; ++c) lanes[c].move_to(total[c]);
      added = 0;
    }
    for (int64_t c = 0; c < width; ++c) {
      const int64_t at = piece * v_.columns + column + c;
      if (pivots_) pivots_[at] = static_cast<double>(pivot[c]);
      sums_[at] = total[c][0];
      products_[at] = total[c][1];
    }
  }
  static C mean_of(const T* x, int64_t n) {
    const C share = C(1) / static_cast<C>(n);  // a sum of large numbers may be infinite
    return static_cast<C>(simd_sum<C>(n, [&](int64_t i) { return load(x + i) * share; }));
  }

  void add_columns(int64_t piece, int64_t column, int64_t width) const {
    C pivot[Channels::kTile], sum[Channels::kTile], product[Channels::kTile];
    const int64_t begin = v_.first_row(piece), end = v_.first_row(piece + 1);
    find_pivots(begin, end, column, width, pivot);
    if (pivots_) std::copy_n(pivot, width, pivots_ + piece * v_.columns + column);
    double *sums = sums_ + piece * v_.columns + column, *products = products_ + piece * v_.columns + column;
    std::fill_n(sums, width, 0.0);
    std::fill_n(products, width, 0.0);
    // A page before, since what a core fetches by itself does not use all that caches and memory give.
    const int64_t ahead = kPageBytes / (v_.tile * kBytes) * v_.columns * kBytes;
    for (int64_t row = begin; row < end;) {
      std::fill_n(sum, width, C(0));
      std::fill_n(product, width, C(0));
      for (const int64_t stop = std::min(end, row + kRowsOfSum); row < stop; ++row) {
        const int64_t at = row * v_.columns + column, n = std::min(width, v_.width_of(row) - column);
        for (int64_t j = 0; j < n; j += kLine) simd::fetch(x_ + at + j, ahead);
#pragma GCC ivdep
        for (int64_t j = 0; j < n; ++j) {
          const C d = load(x_ + at + j) - pivot[j], f = first_(at + j, d, column + j);
          sum[j] += f;
          product[j] += f * d;
        }
      }
      for (int64_t j = 0; j < width; ++j) {
        sums[j] += static_cast<double>(sum[j]);
        products[j] += static_cast<double>(product[j]);
      }
    }
  }
  // All columns of a channel have one pivot, so that their sums can be added.
  void find_pivots(int64_t begin, int64_t end, int64_t column, int64_t width, C* pivot) const {
    if (mean_) {
      for (int64_t j = 0; j < width; ++j) pivot[j] = mean_[v_.channel_of(column + j)];
      return;
    }
    std::fill_n(pivot, width, C(0));
    end = std::min(v_.width_of(end - 1) == v_.columns ? end : end - 1, begin + kRowsOfPivot);
    const C share = C(1) / static_cast<C>(std::max<int64_t>(1, v_.inner * (end - begin)));
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t j = 0; j < width; ++j) pivot[j] += load(x_ + row * v_.columns + column + j) * share;
    }
    const int64_t all = v_.channels * v_.inner;
    for (int64_t j = 0; j < std::min(width, all); j += v_.inner) {
      C sum = 0;
      for (int64_t i = j; i < j + v_.inner; ++i) sum += pivot[i];
      std::fill_n(pivot + j, v_.inner, sum);
    }
    for (int64_t j = all; j < width; ++j) pivot[j] = pivot[j - all];
  }

  const Channels& v_;
  const T* x_;
  const C* mean_;
  First first_;
  double *pivots_, *sums_, *products_;
};

/// Sets every y[i] to f(j)(i). j is the channel of i if the tensor is cut into runs, and its column otherwise. f reads
/// element i of each of the sources.
template <class T, class F>
void map_channels(const Channels& v, T* y, std::span<const Source> sources, const F& f) {
  const int64_t width = v.runs ? v.inner : v.columns;
  parallel_write<kPieceBytes>(y, v.numel, sources, [&](int64_t begin, int64_t end, T* to) {
    int64_t row = begin / width;
    for (int64_t i = begin, next; i < end; to += next - i, i = next, ++row) {
      next = std::min(end, (row + 1) * width);
      if (v.runs) {
        const auto g = f(row % v.channels);
#pragma GCC ivdep
        for (int64_t k = i; k < next; ++k) store(to + (k - i), g(k));
      } else {
#pragma GCC ivdep
        for (int64_t k = i; k < next; ++k) store(to + (k - i), f(k - row * width)(k));
      }
    }
  });
}

}  // namespace plumb::cpu
