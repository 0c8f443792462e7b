// The walks of pooling over its result, run by run. NHWC and CHWN are one case, (outer, H, W, inner): runs are of
// neighbouring lanes of one pixel. NCHW is (N * C, H, W, 1): runs are of neighbouring columns of one row.
#pragma once

#include <vector>

#include "kernels/cpu/pool2d_rules.h"
#include "kernels/pool2d.h"

namespace plumb::cpu::pool {

template <int64_t n>
using Constant = std::integral_constant<int64_t, n>;

/// a / b rounded up; at least 0.
inline int64_t ceil_div(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

/// x (outer, IH, IW, inner) and y (outer, OH, OW, inner) with their windows.
struct Plan {
  int64_t outer, inner, IH, IW, OH, OW, KH, KW, SH, SW, top, left;
  bool streamed;             ///< whether the result is large
  std::vector<float> scale;  ///< 1 / divisor, by the window's rows inside x and then by ow

  Plan(const TensorSpec& x, const TensorSpec& y, const Pool2dParams& p, const TensorSpec& result);

  struct Range {
    int64_t begin, end;
  };
  /// The rows of window `oh` that are inside x, and the columns of window `ow`.
  Range rows(int64_t oh) const { return {std::max<int64_t>(0, top - oh * SH), std::min(KH, IH + top - oh * SH)}; }
  Range columns(int64_t ow) const { return {std::max<int64_t>(0, left - ow * SW), std::min(KW, IW + left - ow * SW)}; }
  /// The windows that row ih and column iw are in.
  Range windows_of_row(int64_t ih) const { return {ceil_div(ih + top - KH + 1, SH), std::min(OH, (ih + top) / SH + 1)}; }
  Range windows_of_column(int64_t iw) const {
    return {ceil_div(iw + left - KW + 1, SW), std::min(OW, (iw + left) / SW + 1)};
  }
  /// The reciprocals for the windows of row oh, by ow.
  const float* scale_of(int64_t oh) const {
    const Range r = rows(oh);
    return scale.data() + (r.end - r.begin - 1) * OW;
  }
};

/// y, rows [begin, end) of all outer * OH, by lanes.
struct ForwardLanes {
  static constexpr char kName[] = "lanes";
  template <class Rule>
  static void walk(const Plan& g, const Launch& l, int64_t begin, int64_t end) {
    const Rule rule(l, g.streamed);
    typename Rule::Run run;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t plane = row / g.OH, oh = row % g.OH;
      const auto [h0, h1] = g.rows(oh);
      const float* scale = g.scale_of(oh);
      for (int64_t ow = 0; ow < g.OW; ++ow) {
        const auto [w0, w1] = g.columns(ow);
        const int64_t to = (row * g.OW + ow) * g.inner;
        const int64_t corner = ((plane * g.IH + oh * g.SH - g.top) * g.IW + ow * g.SW - g.left) * g.inner;
        for (int64_t lane = 0, n; lane < g.inner; lane += n) {
          n = run_length(rule.y + to + lane, std::min(kRun, g.inner - lane), g.streamed);
          rule.begin(run, n, to + lane, h0 * g.KW, w0, 0);
          for (int64_t kh = h0; kh < h1; ++kh) {
            for (int64_t kw = w0; kw < w1; ++kw) {
              rule.step(run, {0, n}, kh * g.KW + kw, corner + (kh * g.IW + kw) * g.inner + lane, Constant<1>());
            }
          }
          rule.finish(run, n, to + lane, scale + ow, Constant<0>());
        }
      }
    }
  }
};

/// y by columns; kStride is the horizontal stride, or 0 for any.
template <int64_t kStride>
struct ForwardColumns {
  static constexpr char kName[] = "columns";
  template <class Rule>
  static void walk(const Plan& g, const Launch& l, int64_t begin, int64_t end) {
    const Rule rule(l, g.streamed);
    typename Rule::Run run;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t plane = row / g.OH, oh = row % g.OH;
      const auto [h0, h1] = g.rows(oh);
      const float* scale = g.scale_of(oh);
      for (int64_t ow = 0, n; ow < g.OW; ow += n) {
        const int64_t to = row * g.OW + ow;
        n = run_length(rule.y + to, std::min(kRun, g.OW - ow), g.streamed);
        rule.begin(run, n, to, h0 * g.KW, g.left - ow * g.SW, g.SW);
        for (int64_t kh = h0; kh < h1; ++kh) {
          const int64_t from = (plane * g.IH + oh * g.SH - g.top + kh) * g.IW + ow * g.SW - g.left;
          for (int64_t kw = 0; kw < g.KW; ++kw) {
            const Part inside{ceil_div(g.left - kw, g.SW) - ow, ceil_div(g.IW + g.left - kw, g.SW) - ow};
            const Part part{std::max<int64_t>(0, inside.begin), std::min(n, inside.end)};
            if constexpr (kStride != 0) {
              rule.step(run, part, kh * g.KW + kw, from + kw, Constant<kStride>());
            } else {
              rule.step(run, part, kh * g.KW + kw, from + kw, g.SW);
            }
          }
        }
        rule.finish(run, n, to, scale + ow, Constant<1>());
      }
    }
  }
};

/// dx, rows [begin, end) of all outer * IH, by lanes.
struct BackwardLanes {
  static constexpr char kName[] = "lanes";
  template <class Rule>
  static void walk(const Plan& g, const Launch& l, int64_t begin, int64_t end) {
    const Rule rule(l);
    auto* dx = static_cast<typename Rule::Element*>(l.out[0]);
    alignas(64) float sum[kRun];
    for (int64_t row = begin; row < end; ++row) {
      const int64_t plane = row / g.IH, ih = row % g.IH;
      const auto [oh0, oh1] = g.windows_of_row(ih);
      for (int64_t iw = 0; iw < g.IW; ++iw) {
        const auto [ow0, ow1] = g.windows_of_column(iw);
        const int64_t to = (row * g.IW + iw) * g.inner;
        for (int64_t lane = 0, n; lane < g.inner; lane += n) {
          n = run_length(dx + to + lane, std::min(kRun, g.inner - lane), g.streamed);
          each({0, n}, [&](int64_t j) { sum[j] = 0; });
          for (int64_t oh = oh1 - 1; oh >= oh0; --oh) {
            for (int64_t ow = ow1 - 1; ow >= ow0; --ow) {
              const int64_t k = (ih + g.top - oh * g.SH) * g.KW + iw + g.left - ow * g.SW;
              rule.step(sum, n, k, ((plane * g.OH + oh) * g.OW + ow) * g.inner + lane, g.scale_of(oh) + ow, Constant<0>());
            }
          }
          put(dx + to + lane, sum, n, g.streamed);
        }
      }
    }
  }
};

/// dx by columns. Those that are a stride apart see their windows alike: one phase of them at a time.
struct BackwardColumns {
  static constexpr char kName[] = "columns";
  template <class Rule>
  static void walk(const Plan& g, const Launch& l, int64_t begin, int64_t end) {
    const Rule rule(l);
    auto* dx = static_cast<typename Rule::Element*>(l.out[0]);
    alignas(64) float sum[kRun];
    for (int64_t row = begin; row < end; ++row) {
      const int64_t plane = row / g.IH, ih = row % g.IH;
      const auto [oh0, oh1] = g.windows_of_row(ih);
      for (int64_t phase = 0; phase < g.SW; ++phase) {
        const int64_t last = ceil_div(g.IW + g.left - phase, g.SW);
        for (int64_t q = ceil_div(g.left - phase, g.SW), n; q < last; q += n) {
          n = std::min(kRun, last - q);
          each({0, n}, [&](int64_t j) { sum[j] = 0; });
          for (int64_t oh = oh1 - 1; oh >= oh0; --oh) {
            const int64_t kh = ih + g.top - oh * g.SH, first = (plane * g.OH + oh) * g.OW;
            for (int64_t kw = phase, back = 0; kw < g.KW; kw += g.SW, ++back) {  // element kw of window q + j - back
              const int64_t skip = std::max<int64_t>(0, back - q), ow = q + skip - back;
              const int64_t count = std::min(n, g.OW + back - q) - skip;
              rule.step(sum + skip, count, kh * g.KW + kw, first + ow, g.scale_of(oh) + ow, Constant<1>());
            }
          }
          auto* to = dx + row * g.IW + q * g.SW + phase - g.left;
          for (int64_t j = 0; j < n; ++j) store(to + j * g.SW, sum[j]);
        }
      }
    }
  }
};

}  // namespace plumb::cpu::pool
