// What pooling does with a run: up to kRun neighbouring elements of its result, worked on together.
//
// A rule has begin(), one step() for each element of the window (backward: for each window that covers the run), and
// finish(). It knows nothing of layouts: the walks (kernels/cpu/pool2d_walks.h) say where the operands of a step stand.
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/cpu/pool2d_stream.h"
#include "kernels/kernel.h"

namespace plumb::cpu::pool {

inline constexpr int64_t kRun = 64;

/// The elements [begin, end) of a run.
struct Part {
  int64_t begin, end;
};

/// body(j) for every j of the part; a whole run has a loop of its own, without a remainder.
template <class Body>
[[gnu::always_inline]] inline void each(Part part, const Body& body) {
  if (part.begin == 0 && part.end == kRun) {
#pragma GCC ivdep
    for (int64_t j = 0; j < kRun; ++j) body(j);
  } else {
#pragma GCC ivdep
    for (int64_t j = part.begin; j < part.end; ++j) body(j);
  }
}

/// The first n of `values`, in the type of the result.
template <class T>
void put(T* to, const float* values, int64_t n, bool streamed) {
  if constexpr (std::is_same_v<T, float>) {
    write(to, values, n, streamed);
  } else {
    T rounded[kRun];
    each({0, n}, [&](int64_t j) { rounded[j] = static_cast<T>(values[j]); });
    write(to, rounded, n, streamed);
  }
}

struct NoIndex {};
template <class Index>
inline constexpr bool has_index = !std::is_same_v<Index, NoIndex>;

/// y, and where the maxima stood unless Index is NoIndex.
template <class T, class Index>
struct MaxForward {
  using Element = T;
  const T* x;
  T* y;
  Index* index = nullptr;
  bool streamed;

  MaxForward(const Launch& l, bool streams)
      : x(static_cast<const T*>(l.in[0])), y(static_cast<T*>(l.out[0])), streamed(streams) {
    if constexpr (has_index<Index>) index = static_cast<Index*>(l.out[1]);
  }
  struct Run {
    alignas(64) float best[kRun];
    alignas(64) int32_t at[has_index<Index> ? kRun : 1];
  };
  /// n elements of y at `to`. The first element of window j that is inside x is number row + max(0, edge - j * step).
  void begin(Run& r, int64_t n, int64_t, int64_t row, int64_t edge, int64_t step) const {
    each({0, n}, [&](int64_t j) {
      r.best[j] = -std::numeric_limits<float>::infinity();
      if constexpr (has_index<Index>) r.at[j] = static_cast<int32_t>(row + std::max<int64_t>(0, edge - j * step));
    });
  }
  /// Element number k of the windows of a part; that of window j is x[from + j * stride].
  void step(Run& r, Part part, int64_t k, int64_t from, auto stride) const {
    const auto number = static_cast<int32_t>(k);
    each(part, [&](int64_t j) {
      const float v = load(x + from + j * stride);
      const bool wins = (v > r.best[j]) | (v != v);
      r.best[j] = wins ? v : r.best[j];
      if constexpr (has_index<Index>) r.at[j] = wins ? number : r.at[j];
    });
  }
  void finish(Run& r, int64_t n, int64_t to, const float*, auto) const {
    put(y + to, r.best, n, streamed);
    if constexpr (has_index<Index>) each({0, n}, [&](int64_t j) { index[to + j] = static_cast<Index>(r.at[j]); });
  }
};

/// The elements of g at the places of the maxima.
template <class T, class Index>
struct MaxGather {
  using Element = T;
  const T* g;
  const Index* index;
  T* y;
  bool streamed;

  MaxGather(const Launch& l, bool streams)
      : g(static_cast<const T*>(l.in[0])), index(static_cast<const Index*>(l.in[1])), y(static_cast<T*>(l.out[0])), streamed(streams) {}
  struct Run {
    alignas(64) float found[kRun];
    alignas(64) int32_t at[kRun];
  };
  void begin(Run& r, int64_t n, int64_t to, int64_t, int64_t, int64_t) const {
    each({0, n}, [&](int64_t j) {
      r.found[j] = 0;
      r.at[j] = static_cast<int32_t>(index[to + j]);
    });
  }
  void step(Run& r, Part part, int64_t k, int64_t from, auto stride) const {
    const auto number = static_cast<int32_t>(k);
    each(part, [&](int64_t j) {
      const float v = load(g + from + j * stride);
      r.found[j] = r.at[j] == number ? v : r.found[j];
    });
  }
  void finish(Run& r, int64_t n, int64_t to, const float*, auto) const { put(y + to, r.found, n, streamed); }
};

/// The mean.
template <class T>
struct AvgForward {
  using Element = T;
  const T* x;
  T* y;
  bool streamed;

  AvgForward(const Launch& l, bool streams)
      : x(static_cast<const T*>(l.in[0])), y(static_cast<T*>(l.out[0])), streamed(streams) {}
  struct Run {
    alignas(64) float sum[kRun];
  };
  void begin(Run& r, int64_t n, int64_t, int64_t, int64_t, int64_t) const {
    each({0, n}, [&](int64_t j) { r.sum[j] = 0; });
  }
  void step(Run& r, Part part, int64_t, int64_t from, auto stride) const {
    each(part, [&](int64_t j) { r.sum[j] += load(x + from + j * stride); });
  }
  /// The reciprocal of window j's divisor is scale[j * scale_step].
  void finish(Run& r, int64_t n, int64_t to, const float* scale, auto scale_step) const {
    each({0, n}, [&](int64_t j) { r.sum[j] *= scale[j * scale_step]; });
    put(y + to, r.sum, n, streamed);
  }
};

/// dx of the maximum: dy where the index names this element of the window.
template <class T, class Index>
struct MaxBackward {
  using Element = T;
  const T* dy;
  const Index* index;

  explicit MaxBackward(const Launch& l) : dy(static_cast<const T*>(l.in[0])), index(static_cast<const Index*>(l.in[1])) {}
  /// Adds to sum[j] what comes through element number k of the window at dy[from + j], j < n.
  void step(float* sum, int64_t n, int64_t k, int64_t from, const float*, auto) const {
    const auto number = static_cast<Index>(k);
    each({0, n}, [&](int64_t j) { sum[j] += index[from + j] == number ? load(dy + from + j) : 0.0f; });
  }
};

/// dx of the mean.
template <class T>
struct AvgBackward {
  using Element = T;
  const T* dy;

  explicit AvgBackward(const Launch& l) : dy(static_cast<const T*>(l.in[0])) {}
  void step(float* sum, int64_t n, int64_t, int64_t from, const float* scale, auto scale_step) const {
    each({0, n}, [&](int64_t j) { sum[j] += load(dy + from + j) * scale[j * scale_step]; });
  }
};

}  // namespace plumb::cpu::pool
