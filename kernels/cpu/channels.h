// Sums over every channel of a tensor (N, C, ...) and maps with one set of coefficients a channel, in any layout.
//
// In memory the tensor is (outer, C, inner). Where inner is long, each channel is gathered from runs; otherwise rows of
// (C, inner), several of them together if they are short, are added up column by column. Either way there are `rows` by
// `columns` blocks of elements. Sums are cut into pieces of rows that depend on the shape alone, so that their bits do
// not depend on the number of threads.
#pragma once

#include <bit>

#include "kernels/cpu/element.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/parallel.h"

namespace plumb::cpu {

/// How a tensor is cut. `pieces` times `columns` partial sums of each kind are made.
struct Channels {
  static constexpr int64_t kCut = kShortSum;  ///< elements of a block of a run
  static constexpr int64_t kTile = 256;       ///< columns that are worked on side by side

  int64_t numel, channels, inner, per_channel;
  bool runs;
  int64_t cuts = 1, rows, columns, tile = kTile, pieces;

  /// x is (N, C) or (N, C, H, W) and not empty.
  explicit Channels(const TensorSpec& x) : numel(x.numel()), channels(x.shape[1]), per_channel(numel / channels) {
    const DimOrder order = memory_order(x.layout, x.rank());
    inner = 1;
    for (int i = x.rank() - 1; order[i] != 1; --i) inner *= x.shape[order[i]];
    runs = inner >= 32;
    if (runs) {
      cuts = (inner + kCut - 1) / kCut;
      rows = per_channel / inner * cuts;
      columns = channels;
      tile = cuts > 1 ? 1 : 64;
    } else {
      const int64_t width = channels * inner;
      columns = width * std::clamp<int64_t>(kTile / width, 1, numel / width);
      rows = (numel + columns - 1) / columns;
    }
    pieces = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(rows / (runs ? 4 : 64), 1, 64))));
  }

  int64_t first_row(int64_t piece) const { return rows * piece / pieces; }
  /// How many elements of a piece are in a column.
  int64_t count(int64_t piece, int64_t column) const {
    const int64_t first = first_row(piece), last = first_row(piece + 1);
    if (runs) return elements_before(last) - elements_before(first);
    return last - first - (last == rows && column >= width_of(rows - 1) ? 1 : 0);
  }
  /// f(column) for each column of a channel.
  template <class F>
  void for_columns(int64_t channel, const F& f) const {
    const int64_t width = runs ? 1 : inner;
    for (int64_t first = channel * width; first < columns; first += channels * width) {
      for (int64_t i = 0; i < width; ++i) f(first + i);
    }
  }
  int64_t channel_of(int64_t column) const { return runs ? column : column / inner % channels; }
  /// The elements of a row of columns; the last one may be short.
  int64_t width_of(int64_t row) const { return std::min(columns, numel - row * columns); }

 private:
  int64_t elements_before(int64_t row) const { return row / cuts * inner + std::min(row % cuts * kCut, inner); }
};

/// Partial sums of first(i, d) and first(i, d) d over the elements i of each column, d being x[i] less the column's pivot.
/// Pivots are `mean` of the channel if it is given, and else a mean of few elements, returned in `pivots`: close to the
/// data, so that squares of differences keep their digits (Chan, Golub, LeVeque: Algorithms for computing the sample
/// variance, 1983). All arrays are (pieces, columns).
template <class T, class First>
class ChannelSums {
 public:
  using C = Compute<T>;
  ChannelSums(const Channels& v, const T* x, const C* mean, First first, double* pivots, double* sums, double* products)
      : v_(v), x_(x), mean_(mean), first_(first), pivots_(pivots), sums_(sums), products_(products) {}
  void run() const {
    const int64_t tiles = (v_.columns + v_.tile - 1) / v_.tile;
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

  void add_runs(int64_t piece, int64_t column, int64_t width) const {
    double *sums = sums_ + piece * v_.columns, *products = products_ + piece * v_.columns;
    C pivot[64];
    const int64_t begin = v_.first_row(piece), end = v_.first_row(piece + 1);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t cut = row % v_.cuts * Channels::kCut, n = std::min(Channels::kCut, v_.inner - cut);
      for (int64_t c = column; c < column + width; ++c) {
        const int64_t at = (row / v_.cuts * v_.channels + c) * v_.inner + cut;
        C& p = pivot[c - column];
        if (row == begin) {
          p = mean_ ? mean_[c] : static_cast<C>(lane_sum<C>(n, [&](int64_t i) { return load(x_ + at + i); }) / static_cast<double>(n));
          if (!mean_) pivots_[piece * v_.columns + c] = static_cast<double>(p);
          sums[c] = products[c] = 0;
        }
        const auto [s, q] = lane_sums<C, 2>(n, [&, centre = p](int64_t i) {
          const C d = load(x_ + at + i) - centre, f = first_(at + i, d);
          return std::array<C, 2>{f, f * d};
        });
        sums[c] += s;
        products[c] += q;
      }
    }
  }

  void add_columns(int64_t piece, int64_t column, int64_t width) const {
    C pivot[Channels::kTile], sum[Channels::kTile], product[Channels::kTile];
    const int64_t begin = v_.first_row(piece), end = v_.first_row(piece + 1);
    const int64_t full = v_.width_of(end - 1) == v_.columns ? end : end - 1;  // behind the last row that is not short
    find_pivots(begin, std::min(full, begin + kRowsOfPivot), column, width, pivot);
    double *sums = sums_ + piece * v_.columns + column, *products = products_ + piece * v_.columns + column;
    std::fill_n(sums, width, 0.0);
    std::fill_n(products, width, 0.0);
    for (int64_t row = begin; row < end;) {
      std::fill_n(sum, width, C(0));
      std::fill_n(product, width, C(0));
      const int64_t stop = std::min(full, row + kRowsOfSum);
      for (; row + 4 <= stop; row += 4) add_rows<4>(row, column, width, pivot, sum, product);
      for (; row < stop; ++row) add_rows<1>(row, column, width, pivot, sum, product);
      if (row == full && row < end) {
        add_rows<1>(row, column, std::clamp<int64_t>(v_.width_of(row) - column, 0, width), pivot, sum, product);
        ++row;
      }
      for (int64_t j = 0; j < width; ++j) {
        sums[j] += static_cast<double>(sum[j]);
        products[j] += static_cast<double>(product[j]);
      }
    }
  }
  void find_pivots(int64_t begin, int64_t end, int64_t column, int64_t width, C* pivot) const {
    if (mean_) {
      for (int64_t j = 0; j < width; ++j) pivot[j] = mean_[v_.channel_of(column + j)];
      return;
    }
    std::fill_n(pivot, width, C(0));
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t j = 0; j < width; ++j) pivot[j] += load(x_ + row * v_.columns + column + j);
    }
    for (int64_t j = 0; j < width; ++j) {
      pivot[j] /= static_cast<C>(end - begin);
      pivots_[begin_of(begin) + column + j] = static_cast<double>(pivot[j]);
    }
  }
  template <int kRows>
  void add_rows(int64_t row, int64_t column, int64_t width, const C* pivot, C* sum, C* product) const {
    const int64_t at = row * v_.columns + column;
#pragma GCC ivdep
    for (int64_t j = 0; j < width; ++j) {
      C s = 0, q = 0;
#pragma GCC unroll 4
      for (int k = 0; k < kRows; ++k) {
        const int64_t i = at + k * v_.columns + j;
        const C d = load(x_ + i) - pivot[j], f = first_(i, d);
        s += f;
        q += f * d;
      }
      sum[j] += s;
      product[j] += q;
    }
  }

  const Channels& v_;
  const T* x_;
  const C* mean_;
  First first_;
  double *pivots_, *sums_, *products_;
};

}  // namespace plumb::cpu
