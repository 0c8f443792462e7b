// What pooling does with a run: a few vectors of neighbouring elements of its result, held in registers.
//
// A rule has begin(), one step() for each element of the window (backward: for each window that covers the run), and
// finish(); it may have an end_row() for each row of the window. It knows nothing of layouts: the walks
// (kernels/cpu/pooling/pool2d_walks.h) say where the operands of a step stand.
#pragma once

#include <limits>
#include <type_traits>

#include "dispatch/kernel.h"
#include "kernels/cpu/pooling/pool2d_run.h"

namespace plumb::cpu::pool {

struct NoIndex {};

/// What sums of windows are divided by, and the reciprocals of that: of a window and those after it.
struct Divisors {
  const float *of, *reciprocal_of;
  Divisors operator+(int64_t windows) const { return {of + windows, reciprocal_of + windows}; }
};

/// How windows divide: each by its own divisor, all by one, or all by one whose reciprocal is exact (a power of two).
enum class Sharing { kEach, kAlike, kExact };

/// Sums of the windows of a run, divided and rounded correctly (but where the result is subnormal): by a product and
/// its remainder, for a division takes as long as a dozen products. P. W. Markstein, Computation of elementary
/// functions on the IBM RISC System/6000 processor, 1990.
template <Sharing sharing, class R>
[[gnu::always_inline]] inline Vec shared(Vec sum, R run, Divisors d, int v) {
  if constexpr (sharing == Sharing::kExact) return sum * *d.reciprocal_of;
  const bool alike = sharing == Sharing::kAlike;
  const Vec divisor = alike ? *d.of - Vec{} : run.of_windows(d.of, v);
  const Vec reciprocal = alike ? *d.reciprocal_of - Vec{} : run.of_windows(d.reciprocal_of, v);
  const Vec q = sum * reciprocal;
  const Vec nearer = q + (sum - q * divisor) * reciprocal;
  return q - q == 0.0f ? nearer : q;  // infinities have no remainder
}

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
      const Vec e = run.in_windows(x_ + from, v);
      const IntVec wins = (e > s.best[v]) | (e != e);
      s.best[v] = wins ? e : s.best[v];
      if constexpr (kIndexed) s.at[v] = wins ? IntVec{} + static_cast<int32_t>(k) : s.at[v];
    });
  }
  template <class R>
  void finish(const State<R>& s, R run, int64_t to, Divisors) const {
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
      const Vec e = run.in_windows(g_ + from, v);
      s.found[v] = s.at[v] == static_cast<int32_t>(k) ? e : s.found[v];
    });
  }
  template <class R>
  void finish(const State<R>& s, R run, int64_t to, Divisors) const {
    run.each([&](int v) { run.store(y_ + to, v, s.found[v]); });
  }

 private:
  const T* g_;
  const Index* index_;
  T* y_;
};

/// The mean.
template <class T, Sharing sharing>
class AvgForward {
 public:
  using Element = T;
  AvgForward(const Launch& l) : x_(static_cast<const T*>(l.in[0])), y_(static_cast<T*>(l.out[0])) {}

  const T* source() const { return x_; }

  template <class R>
  struct State {
    Vec sum[R::kVectors], before[R::kVectors];  // of the last elements, and of all before them
  };
  template <class R>
  void begin(State<R>& s, R run, int64_t, int64_t) const {
    run.each([&](int v) { s.sum[v] = s.before[v] = Vec{}; });
  }
  template <class R>
  void step(State<R>& s, R run, int64_t, int64_t from) const {
    run.each([&](int v) { s.sum[v] += run.in_windows(x_ + from, v); });
  }
  // A sum that went on over a large window would lose the digits of its elements.
  template <class R>
  void end_row(State<R>& s, R run, int64_t row, int64_t width) const {
    if (row % kShort != kShort - 1 && width < kShort) [[likely]]
      return;
    run.each([&](int v) {
      s.before[v] += s.sum[v];
      s.sum[v] = Vec{};
    });
  }
  template <class R>
  void finish(const State<R>& s, R run, int64_t to, Divisors d) const {
    run.each([&](int v) { run.store(y_ + to, v, shared<sharing>(s.before[v] + s.sum[v], run, d, v)); });
  }

 private:
  static constexpr int64_t kShort = 32;  // rows of a window, or elements of one
  const T* x_;
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
  void step(Vec* sum, R run, int64_t k, int64_t from, Divisors) const {
    run.each([&](int v) {
      const IntVec at = run.load(index_ + from, v);
      sum[v] += at == static_cast<int32_t>(k) ? run.load(dy_ + from, v) : Vec{};
    });
  }
  template <class R>
  void finish(Vec*, R, Divisors) const {}
  /// Fetches what the steps of the run at dy[from], which need not exist, will read.
  template <class R>
  void fetch(R run, int64_t from) const {
    run.fetch(dy_, from);
    run.fetch(index_, from);
  }

 private:
  const T* dy_;
  const Index* index_;
};

/// dx of the mean. Where windows divide alike, the sum is divided instead of each of its terms.
template <class T, Sharing sharing>
class AvgBackward {
 public:
  using Element = T;
  explicit AvgBackward(const Launch& l) : dy_(static_cast<const T*>(l.in[0])) {}

  template <class R>
  void step(Vec* sum, R run, int64_t, int64_t from, Divisors d) const {
    run.each([&](int v) {
      const Vec dy = run.load(dy_ + from, v);
      sum[v] += sharing == Sharing::kEach ? shared<sharing>(dy, run, d, v) : dy;
    });
  }
  template <class R>
  void finish(Vec* sum, R run, Divisors d) const {
    if constexpr (sharing != Sharing::kEach) run.each([&](int v) { sum[v] = shared<sharing>(sum[v], run, d, v); });
  }
  template <class R>
  void fetch(R run, int64_t from) const {
    run.fetch(dy_, from);
  }

 private:
  const T* dy_;
};

}  // namespace plumb::cpu::pool
