// The walks of pooling over its result, run by run. NHWC and CHWN are one case, (outer, H, W, inner): runs are of
// neighbours in the innermost dimension. NCHW is (N * C, H, W, 1): runs are of neighbouring columns of one row.
#pragma once

#include <algorithm>

#include "kernels/cpu/nontemporal.h"
#include "kernels/cpu/pooling/pool2d_plan.h"

namespace plumb::cpu::pool {

/// body(run, lane) for runs over the lanes of a pixel.
template <class Body>
[[gnu::always_inline]] inline void each_inner_run(int64_t lanes, const Body& body) {
  constexpr int64_t kMost = 4 * kLanes;
  int64_t lane = 0;
  for (; lane + kMost <= lanes; lane += kMost) body(Run<Inner, 4, true>{kMost}, lane);
  if (lanes - lane > kLanes) {
    body(Run<Inner, 4, false>{lanes - lane}, lane);
  } else if (lane < lanes) {
    body(Run<Inner, 1, false>{lanes - lane}, lane);
  }
}

/// Fetches into the second cache what a run in the row below will be the first to read: rows are far apart, and no
/// processor foresees the next.
template <class R, class T>
[[gnu::always_inline]] inline void fetch_row_below(const View& g, const T* x, int64_t corner) {
  for (int64_t kh = std::max(g.KH, g.SH); kh < g.KH + g.SH; ++kh) {
    for (int64_t kw = std::max<int64_t>(0, g.KW - g.SW); kw < g.KW; ++kw) {
      R::fetch(x, corner + (kh * g.IW + kw) * g.inner);
    }
  }
}

/// A run of the result from its operands: the elements [h) x [w) of windows whose first element, inside x or not, is at
/// `corner`.
template <class Rule, class R>
[[gnu::always_inline]] inline void pool_windows(const View& g, const Rule& rule, R run, int64_t to, int64_t corner,
                                                Range h, Range w, Divisors divisors) {
  typename Rule::template State<R> state;
  rule.begin(state, run, to, h.begin * g.KW + w.begin);
  const auto take = [&](int64_t kh, Range of_row) {
    for (int64_t kw = of_row.begin; kw < of_row.end; ++kw) {
      rule.step(state, run, kh * g.KW + kw, corner + (kh * g.IW + kw) * g.inner);
    }
    if constexpr (requires { rule.end_row(state, run, kh, w.size()); }) rule.end_row(state, run, kh, of_row.size());
  };
  constexpr int64_t kLong = 512;
  for (int64_t kh = h.begin; kh < h.end; ++kh) {
    Range left = w;
    for (; left.size() > kLong; left.begin += kLong) take(kh, {left.begin, left.begin + kLong});
    take(kh, left);
  }
  rule.finish(state, run, to, divisors);
}

/// The sum of what reaches the run through windows [oh) x [ow), those of its first element: element (row, column) of
/// the padded x. `offset` is the run's place in dy's pixels.
template <class Rule, class R>
[[gnu::always_inline]] inline void gather_windows(const View& g, const Rule& rule, R run, Vec* sum, int64_t plane,
                                                  int64_t row, int64_t column, Range oh, Range ow, int64_t offset) {
  run.each([&](int v) { sum[v] = Vec{}; });
  for (int64_t i = oh.end - 1; i >= oh.begin; --i) {
    const Divisors divisors = g.divisors_of(i);
    for (int64_t j = ow.end - 1; j >= ow.begin; --j) {
      const int64_t k = (row - i * g.SH) * g.KW + column - j * g.SW;
      rule.step(sum, run, k, ((plane * g.OH + i) * g.OW + j) * g.inner + offset, divisors + j);
    }
  }
  rule.finish(sum, run, g.divisors);
}

/// Rows [begin, end) of all outer * OH of y.
template <class Rule>
void forward_inner(const Plan& plan, const Launch& l, int64_t begin, int64_t end) {
  const View g(plan);
  const Rule rule(l);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t plane = row / g.OH, oh = row % g.OH;
    const Divisors divisors = g.divisors_of(oh);
    for (int64_t ow = 0; ow < g.OW; ++ow) {
      const int64_t to = (row * g.OW + ow) * g.inner;
      const int64_t corner = ((plane * g.IH + oh * g.SH - g.top) * g.IW + ow * g.SW - g.left) * g.inner;
      const Range h = g.rows(oh), w = g.columns(ow);
      each_inner_run(g.inner, [&](auto run, int64_t lane) {
        pool_windows(g, rule, run, to + lane, corner + lane, h, w, divisors + ow);
        fetch_row_below<decltype(run)>(g, rule.source(), corner + lane);
      });
    }
  }
}

/// The same by columns. Windows that reach over an edge of x are done one by one.
template <class Rule, int64_t kStride>
void forward_columns(const Plan& plan, const Launch& l, int64_t begin, int64_t end) {
  const View g(plan);
  const Rule rule(l);
  const Range inside{ceil_div(g.left, g.SW),
                     std::min(g.OW, g.IW + g.left < g.KW ? 0 : (g.IW + g.left - g.KW) / g.SW + 1)};
  for (int64_t row = begin; row < end; ++row) {
    const int64_t plane = row / g.OH, oh = row % g.OH;
    const Divisors divisors = g.divisors_of(oh);
    for (int64_t ow = 0, n; ow < g.OW; ow += n) {
      n = ow >= inside.begin && ow < inside.end ? std::min(kLanes, inside.end - ow) : 1;
      const int64_t corner = (plane * g.IH + oh * g.SH - g.top) * g.IW + ow * g.SW - g.left;
      const auto pool = [&](auto run) {
        pool_windows(g, rule, run, row * g.OW + ow, corner, g.rows(oh), g.columns(ow), divisors + ow);
      };
      n == kLanes ? pool(Run<Columns<kStride>, 1, true>{n, g.SW}) : pool(Run<Columns<kStride>, 1, false>{n, g.SW});
    }
  }
}

/// Rows [begin, end) of all outer * IH of dx. `kStreams`: past the caches, which is possible where a pixel is whole
/// lines (streams_inner).
template <class Rule, bool kStreams = false>
void backward_inner(const Plan& plan, const Launch& l, int64_t begin, int64_t end) {
  const View g(plan);
  const Rule rule(l);
  auto* dx = static_cast<typename Rule::Element*>(l.out[0]);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t plane = row / g.IH, ih = row % g.IH;
    const Range oh = g.windows_of_row[ih];
    const bool is_last = (ih + g.top + 1) % g.SH == 0;
    for (int64_t iw = 0; iw < g.IW; ++iw) {
      const Range ow = g.windows_of_column[iw];
      auto* to = dx + (row * g.IW + iw) * g.inner;
      each_inner_run(g.inner, [&](auto run, int64_t lane) {
        Vec sum[run.kVectors];
        gather_windows(g, rule, run, sum, plane, ih + g.top, iw + g.left, oh, ow, lane);
        // The row of windows below is far away, and no processor foresees it.
        if (is_last && iw % g.SW == 0) rule.fetch(run, ((plane * g.OH + oh.end) * g.OW + ow.begin) * g.inner + lane);
        run.each([&](int v) {
          if constexpr (kStreams) {
            if (run.left(v) > 0) copy_nontemporal(to + lane + v * kLanes, sum[v]);
          } else {
            run.store(to + lane, v, sum[v]);
          }
        });
      });
    }
  }
  if (kStreams) nontemporal_fence();
}
inline bool streams_inner(const Extents& g) { return sizeof(Vec) == 64 && g.inner % kLanes == 0; }

/// The same by columns. Columns that are a stride apart see their windows alike, so that a run is of those, and there
/// is one for each column of the first stride. Runs in which a column lacks windows are of one element.
template <class Rule, int64_t kStride>
void backward_columns(const Plan& plan, const Launch& l, int64_t begin, int64_t end) {
  const View g(plan);
  const Rule rule(l);
  auto* dx = static_cast<typename Rule::Element*>(l.out[0]);
  const int64_t q_end = ceil_div(g.IW + g.left, g.SW);
  const Range inside{std::max(ceil_div(g.KW, g.SW) - 1, ceil_div(g.left, g.SW)),
                     std::min(g.OW, (g.IW + g.left) / g.SW)};
  for (int64_t row = begin; row < end; ++row) {
    const int64_t plane = row / g.IH, ih = row % g.IH;
    const Range oh = g.windows_of_row[ih];
    for (int64_t q = g.left / g.SW, n; q < q_end; q += n) {
      n = q >= inside.begin && q < inside.end ? std::min(kLanes, inside.end - q) : 1;
      const auto sum_of = [&](auto run, int64_t column) {
        Vec sum[1];
        const Range ow = g.windows_of_column[column - g.left];
        gather_windows(g, rule, run, sum, plane, ih + g.top, column, oh, ow, 0);
        return sum[0];
      };
      const int64_t first = q * g.SW;
      const int64_t to = row * g.IW + first - g.left;
      if (kStride == 1 && n == kLanes) {
        const Run<Columns<1>, 1, true> run{n};
        run.store(dx + to, 0, sum_of(run, first));
      } else if (kStride == 2 && n == kLanes) {
        const Run<Columns<1>, 1, true> run{n};
        store_in_turn(dx + to, sum_of(run, first), sum_of(run, first + 1), run);
      } else {
        const int64_t phases = std::min(g.SW, g.IW + g.left - first);  // up to the end of x
        for (int64_t phase = std::max<int64_t>(0, g.left - first); phase < phases; ++phase) {
          const Vec sum = sum_of(Run<Columns<1>, 1, false>{n}, first + phase);
          for (int64_t j = 0; j < n; ++j) dx[to + phase + j * g.SW] = static_cast<typename Rule::Element>(sum[j]);
        }
      }
    }
  }
}

/// The same where windows tile x (Extents::tiles) and have two columns: a row of windows has rows of dx to itself.
/// Here [begin, end) are rows of dy.
template <class Rule>
void backward_column_pairs(const Plan& plan, const Launch& l, int64_t begin, int64_t end) {
  using T = typename Rule::Element;
  const View g(plan);
  const Rule rule(l);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t plane = row / g.OH, oh = row % g.OH;
    const Divisors divisors = g.divisors_of(oh);
    auto* to = static_cast<T*>(l.out[0]) + (plane * g.IH + oh * g.KH) * g.IW;
    for (int64_t kh = 0; kh < g.KH; ++kh, to += g.IW) {
      for (int64_t ow = 0, n; ow < g.OW; ow += n) {
        n = std::min(kLanes, g.OW - ow);
        const auto sums = [&](auto run) {
          Vec even{}, odd{};
          rule.step(&even, run, 2 * kh, row * g.OW + ow, divisors + ow);
          rule.step(&odd, run, 2 * kh + 1, row * g.OW + ow, divisors + ow);
          rule.finish(&even, run, divisors);
          rule.finish(&odd, run, divisors);
          store_in_turn(to + 2 * ow, even, odd, run);
        };
        n == kLanes ? sums(Run<Columns<1>, 1, true>{n}) : sums(Run<Columns<1>, 1, false>{n});
      }
      std::fill(to + 2 * g.OW, to + g.IW, T{});
    }
    if (oh == g.OH - 1) std::fill(to, to + (g.IH - g.OH * g.KH) * g.IW, T{});
  }
}

/// body(run, window) for blocks [begin, end) of all windows (Extents::is_squares).
template <class Body>
[[gnu::always_inline]] inline void each_block(const View& g, int64_t begin, int64_t end, const Body& body) {
  for (int64_t block = begin; block < end; ++block) {
    const int64_t window = block * kLanes, n = std::min(kLanes, g.windows() - window);
    n == kLanes ? body(SquareRun<true>(n, g.squares), window) : body(SquareRun<false>(n, g.squares), window);
  }
}

template <class Rule>
void forward_squares(const Plan& plan, const Launch& l, int64_t begin, int64_t end) {
  const View g(plan);
  const Rule rule(l);
  each_block(g, begin, end, [&](auto run, int64_t window) {
    typename Rule::template State<decltype(run)> state;
    rule.begin(state, run, window, 0);
    for (run.k = 0; run.k < 4; ++run.k) rule.step(state, run, static_cast<int64_t>(run.k), 4 * window);
    rule.finish(state, run, window, g.divisors_of(0));
  });
}

template <class Rule>
void backward_squares(const Plan& plan, const Launch& l, int64_t begin, int64_t end) {
  const View g(plan);
  const Rule rule(l);
  auto* dx = static_cast<typename Rule::Element*>(l.out[0]);
  each_block(g, begin, end, [&](auto run, int64_t window) {
    Vec elements[4] = {};
    for (int64_t k = 0; k < 4; ++k) {
      rule.step(elements + k, run, k, window, g.divisors_of(0));
      rule.finish(elements + k, run, g.divisors_of(0));
    }
    run.store_block(dx + 4 * window, elements);
  });
}

}  // namespace plumb::cpu::pool
