// The walks of pooling over its result: (outer, H, W, inner) in memory, run by run over the inner dimension.
#pragma once

#include <vector>

#include "kernels/cpu/pooling/pool2d_rules.h"
#include "kernels/cpu/range.h"
#include "kernels/pool2d.h"

namespace plumb::cpu::pool {

/// x (outer, IH, IW, inner) and y (outer, OH, OW, inner) with their windows.
struct Extents {
  int64_t outer, inner, IH, IW, OH, OW, KH, KW, SH, SW, top, left;
  bool streams;  ///< whether y, which is large, is written past the caches

  Extents(const TensorSpec& x, const TensorSpec& y, const Pool2dParams& p, bool is_large);
  /// The rows of window oh that are inside x, and the columns of window ow.
  Range rows(int64_t oh) const { return {std::max<int64_t>(0, top - oh * SH), std::min(KH, IH + top - oh * SH)}; }
  Range columns(int64_t ow) const { return {std::max<int64_t>(0, left - ow * SW), std::min(KW, IW + left - ow * SW)}; }
};

struct Plan {
  Extents extents;
  std::vector<Range> windows_of_row, windows_of_column;  ///< the windows that row ih is in, and those of column iw

  explicit Plan(const Extents& extents);
};

/// Fetches into the second cache what a run in the row below will be the first to read: rows are far apart, and no
/// processor foresees the next.
template <class R, class T>
[[gnu::always_inline]] inline void fetch_row_below(const Extents& g, const T* x, int64_t corner) {
  for (int64_t kh = std::max(g.KH, g.SH); kh < g.KH + g.SH; ++kh) {
    for (int64_t kw = std::max<int64_t>(0, g.KW - g.SW); kw < g.KW; ++kw) {
      R::fetch(x, corner + (kh * g.IW + kw) * g.inner);
    }
  }
}

/// Rows [begin, end) of all outer * OH of y.
template <class Rule>
void forward(const Plan& plan, const Launch& l, int64_t begin, int64_t end) {
  const Rule rule(l);
  const Extents g = plan.extents;  // a copy, which no store can change
  for (int64_t row = begin; row < end; ++row) {
    const int64_t plane = row / g.OH, oh = row % g.OH;
    const Range h = g.rows(oh);
    for (int64_t ow = 0; ow < g.OW; ++ow) {
      const int64_t to = (row * g.OW + ow) * g.inner;
      const int64_t corner = ((plane * g.IH + oh * g.SH - g.top) * g.IW + ow * g.SW - g.left) * g.inner;
      const Range w = g.columns(ow);
      each_run(g.inner, g.streams, [&](auto run, int64_t lane) {
        typename Rule::template State<decltype(run)> state;
        rule.begin(state, run, to + lane, h.begin * g.KW + w.begin);
        for (int64_t kh = h.begin; kh < h.end; ++kh) {
          for (int64_t kw = w.begin; kw < w.end; ++kw) {
            rule.step(state, run, kh * g.KW + kw, corner + lane + (kh * g.IW + kw) * g.inner);
          }
        }
        rule.finish(state, run, to + lane);
        fetch_row_below<decltype(run)>(g, rule.source(), corner + lane);
      });
    }
  }
}

/// Rows [begin, end) of all outer * IH of dx: each element is the sum of what reaches it through its windows.
template <class Rule>
void backward(const Plan& plan, const Launch& l, int64_t begin, int64_t end) {
  const Rule rule(l);
  const Extents g = plan.extents;
  const Range* columns = plan.windows_of_column.data();
  auto* dx = static_cast<typename Rule::Element*>(l.out[0]);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t plane = row / g.IH, ih = row % g.IH;
    const Range oh = plan.windows_of_row[static_cast<size_t>(ih)];
    for (int64_t iw = 0; iw < g.IW; ++iw) {
      const Range ow = columns[iw];
      auto* to = dx + (row * g.IW + iw) * g.inner;
      each_run(g.inner, false, [&](auto run, int64_t lane) {
        Vec sum[run.kVectors] = {};
        for (int64_t i = oh.end - 1; i >= oh.begin; --i) {
          for (int64_t j = ow.end - 1; j >= ow.begin; --j) {
            const int64_t k = (ih + g.top - i * g.SH) * g.KW + iw + g.left - j * g.SW, window = i * g.OW + j;
            rule.step(sum, run, k, (plane * g.OH * g.OW + window) * g.inner + lane);
          }
        }
        run.each([&](int v) { run.store(to + lane, v, sum[v]); });
      });
    }
  }
}

}  // namespace plumb::cpu::pool
