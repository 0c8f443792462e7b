// What pooling of maxima does with a run: a few vectors of neighbouring elements of its result, held in registers.
//
// A rule has begin(), one step() for each element of the window (backward: for each window that covers the run), and
// finish(). It knows nothing of layouts: the walks (kernels/cpu/pooling/pool2d_walks.h) say where the operands of a
// step stand.
#pragma once

#include <limits>
#include <type_traits>

#include "dispatch/kernel.h"
#include "kernels/cpu/pooling/pool2d_run.h"

namespace plumb::cpu::pool {

struct NoIndex {};

/// y, and where the maxima stood unless Index is NoIndex.
template <class T, class Index>
class MaxForward {
 public:
  using Element = T;
  static constexpr bool kIndexed = !std::is_same_v<Index, NoIndex>;
  MaxForward(const Launch& l) : x_(static_cast<const T*>(l.in[0])), y_(static_cast<T*>(l.out[0])) {
    if constexpr (kIndexed) index_ = static_cast<Index*>(l.out[1]);
  }

  /// What the elements of windows are read from.
  const T* source() const { return x_; }

  template <class R>
  struct State {
    Vec best[R::kVectors];
    IntVec at[R::kVectors];
  };
  /// The elements of y from `to` on; element number `first` of the window is the first that is inside x.
  template <class R>
  void begin(State<R>& s, R run, int64_t, int64_t first) const {
    run.each([&](int v) {
      s.best[v] = Vec{} - std::numeric_limits<float>::infinity();
      s.at[v] = IntVec{} + static_cast<int32_t>(first);
    });
  }
  /// Element number k of the windows, at x[from].
  template <class R>
  void step(State<R>& s, R run, int64_t k, int64_t from) const {
    run.each([&](int v) {
      const Vec e = run.load(x_ + from, v);
      const IntVec wins = (e > s.best[v]) | (e != e);
      s.best[v] = wins ? e : s.best[v];
      if constexpr (kIndexed) s.at[v] = wins ? IntVec{} + static_cast<int32_t>(k) : s.at[v];
    });
  }
  template <class R>
  void finish(const State<R>& s, R run, int64_t to) const {
    run.each([&](int v) {
      run.store(y_ + to, v, s.best[v]);
      if constexpr (kIndexed) run.store(index_ + to, v, s.at[v]);
    });
  }

 private:
  const T* x_;
  T* y_;
  Index* index_ = nullptr;
};

/// The elements of g at the places of the maxima.
template <class T, class Index>
class MaxGather {
 public:
  using Element = T;
  MaxGather(const Launch& l)
      : g_(static_cast<const T*>(l.in[0])), index_(static_cast<const Index*>(l.in[1])), y_(static_cast<T*>(l.out[0])) {}

  const T* source() const { return g_; }

  template <class R>
  struct State {
    Vec found[R::kVectors];
    IntVec at[R::kVectors];
  };
  template <class R>
  void begin(State<R>& s, R run, int64_t to, int64_t) const {
    run.each([&](int v) {
      s.found[v] = Vec{};
      s.at[v] = run.load(index_ + to, v);
    });
  }
  template <class R>
  void step(State<R>& s, R run, int64_t k, int64_t from) const {
    run.each([&](int v) {
      const Vec e = run.load(g_ + from, v);
      s.found[v] = s.at[v] == static_cast<int32_t>(k) ? e : s.found[v];
    });
  }
  template <class R>
  void finish(const State<R>& s, R run, int64_t to) const {
    run.each([&](int v) { run.store(y_ + to, v, s.found[v]); });
  }

 private:
  const T* g_;
  const Index* index_;
  T* y_;
};

/// dx of the maximum: dy where the index names this element of the window.
template <class T, class Index>
class MaxBackward {
 public:
  using Element = T;
  explicit MaxBackward(const Launch& l)
      : dy_(static_cast<const T*>(l.in[0])), index_(static_cast<const Index*>(l.in[1])) {}

  /// Adds what comes through element number k of the windows at dy[from].
  template <class R>
  void step(Vec* sum, R run, int64_t k, int64_t from) const {
    run.each([&](int v) {
      const IntVec at = run.load(index_ + from, v);
      sum[v] += at == static_cast<int32_t>(k) ? run.load(dy_ + from, v) : Vec{};
    });
  }

 private:
  const T* dy_;
  const Index* index_;
};

}  // namespace plumb::cpu::pool
