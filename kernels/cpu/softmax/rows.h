// Softmax and cross entropy along rows, each read by itself, in vectors. To find what the lanes of one come to takes as
// long as to compute some of its vectors; so where rows are not long, it is found for kSide of them side by side. (Very
// short ones are as a whole: short_rows.h.)
#pragma once

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/row_vectors.h"
#include "kernels/cpu/softmax/short_rows.h"

namespace plumb::cpu {

/// The longest rows that go kSide together. (Of f64 more than 128 are not written past the caches.)
inline constexpr int64_t kLongestTogether = 256;

/// Calls together(i) for kSide rows of n elements of T from number i on if they are not long, and one(i) for each row
/// that is left over, or if they are. Which these are does not depend on the number of threads. `streams`: whether they
/// write past the caches.
template <class T, class Together, class One>
void by_rows(int64_t rows, int64_t n, bool streams, const Together& together, const One& one) {
  const bool go_together = n <= kLongestTogether;
  const int64_t grain = kGrainBytes / static_cast<int64_t>(sizeof(T)) / n;
  parallel_for(rows, grain, go_together ? kSide : 1, [&](int64_t begin, int64_t end) {
    for (; go_together && begin + kSide <= end; begin += kSide) together(begin);
    for (; begin < end; ++begin) one(begin);
    if (streams) nontemporal_fence();
  });
}

/// The lanes of kSide rows, as lanes_of(s) gives those of row s.
template <class T>
class FoldedLanes {
 public:
  using C = Compute<T>;
  template <class LanesOf>
  explicit FoldedLanes(const LanesOf& lanes_of) {
    for (int64_t s = 0; s < kSide; ++s) Lanes<T>::store(of_[s], lanes_of(s));
  }
  void find_largest(C (&largest)[kSide]) const {
    short_rows::Elements<C> side;
    short_rows::read(of_[0], kCount, side);
    short_rows::find_largest(side, kCount, largest);
  }
  void add_up(C (&total)[kSide]) const {
    short_rows::Elements<C> side;
    short_rows::read(of_[0], kCount, side);
    short_rows::sum(kCount, total, [&](int64_t i, int64_t s) { return side[i][s]; });
  }

 private:
  static constexpr int64_t kCount = Lanes<T>::kCount;
  C of_[kSide][kCount];
};

namespace row {

/// e^v of the lanes of v, which are not above 0.
template <class T>
[[gnu::always_inline]] inline auto exp_below(typename Lanes<T>::V v) {
  return Lanes<T>::map(v, [](Compute<T> of) { return functors::math::exp_below(of); });
}

/// The vectors e^(x - largest) of a row; with kKeeps, they are written to `kept`, too.
template <class T, bool kKeeps, class C = Compute<T>>
auto powers(const T* x, C largest, C* kept = nullptr) {
  using L = Lanes<T>;
  return [=](int64_t i, int64_t count) {
    const auto power = exp_below<T>(L::load(x + i, count) - largest);
    if constexpr (kKeeps) L::store(kept + i, power, count);
    return std::array{power};
  };
}

/// Fetches the row that is read kSide rows after this one: by itself a core would wait for it, since it reads kSide at
/// once and then none.
template <class T>
void fetch_next(const T* row, int64_t n) {
  for (int64_t at = 0; at < n * int64_t{sizeof(T)}; at += 64) simd::fetch(row + kSide * n, at);
}

/// y of a row, whose powers were kept or not; `of_sum` is 1 / sum, or the logarithm of it.
template <class T, bool kLog, bool kKept, class C = Compute<T>>
void write(int64_t n, const T* x, C largest, const C* kept, C of_sum, T* y) {
  using L = Lanes<T>;
  for_row<T>(n, [=](int64_t i, int64_t count) {
    if constexpr (kLog) {
      L::store(y + i, (L::load(x + i, count) - largest) - of_sum, count);
    } else if constexpr (kKept) {
      L::store(y + i, L::load(kept + i, count) * of_sum, count);
    } else {
      L::store(y + i, powers<T, false>(x, largest)(i, count)[0] * of_sum, count);
    }
  });
}

/// What adds up to the sum of a row's gradient.
template <class T, bool kLog>
auto gradient_terms(const T* dy, const T* y) {
  using L = Lanes<T>;
  return [=](int64_t i, int64_t count) {
    const auto d = L::load(dy + i, count);
    if constexpr (kLog) return std::array{d};
    return std::array{d * L::load(y + i, count)};
  };
}

/// dx of a row.
template <class T, bool kLog, class C = Compute<T>>
void write_gradient(int64_t n, const T* dy, const T* y, C total, T* dx) {
  using L = Lanes<T>;
  for_row<T>(n, [=](int64_t i, int64_t count) {
    const auto d = L::load(dy + i, count), v = L::load(y + i, count);
    if constexpr (kLog) {
      L::store(dx + i, d - exp_below<T>(v) * total, count);
    } else {
      L::store(dx + i, v * (d - total), count);
    }
  });
}

}  // namespace row

/// Softmax of one row. The powers wait in y, or on the stack if y is of a narrower type; if too many, they are computed
/// twice.
template <class T, bool kLog, class C = Compute<T>>
void softmax_row(int64_t n, const T* x, T* y) {
  const C largest = Lanes<T>::largest(largest_lanes(x, n));
  const auto finish = [&]<bool kKeeps>(C* kept, std::bool_constant<kKeeps>) {
    const double sum = row_sums<T, 1>(n, row::powers<T, kKeeps>(x, largest, kept))[0];
    row::write<T, kLog, kKeeps>(n, x, largest, kept, static_cast<C>(kLog ? std::log(sum) : 1 / sum), y);
  };
  if constexpr (kLog) {
    finish(nullptr, std::false_type());
  } else if constexpr (std::is_same_v<T, C>) {
    finish(y, std::true_type());
  } else if (n <= kShortSum) {
    Unset<C, kShortSum> stack;
    finish(stack.data(), std::true_type());
  } else {
    finish(nullptr, std::false_type());
  }
}

/// The same for kSide rows of up to kLongestTogether elements, one behind the other.
template <class T, bool kLog, class C = Compute<T>>
void softmax_rows(int64_t n, const T* x, T* y) {
  if (n <= kLongestShortRow<T>) return softmax_short_rows<T, kLog>(n, x, y);
  constexpr bool kInY = std::is_same_v<T, C>;
  Unset<C, kInY || kLog ? 1 : kSide * kLongestTogether> stack;
  const auto kept = [&](int64_t s) -> C* {
    if constexpr (kLog) return nullptr;
    if constexpr (kInY) return y + s * n;
    return stack.data() + s * kLongestTogether;
  };
  C largest[kSide], sum[kSide];
  FoldedLanes<T>([&](int64_t s) { return largest_lanes(x + s * n, n); }).find_largest(largest);
  FoldedLanes<T>([&](int64_t s) {
    return sum_lanes<T, 1>(0, n, row::powers<T, !kLog>(x + s * n, largest[s], kept(s)))[0];
  }).add_up(sum);
  short_rows::each([&](int64_t s) { sum[s] = kLog ? functors::math::log(sum[s]) : 1 / sum[s]; });
  for (int64_t s = 0; s < kSide; ++s) {
    row::fetch_next(x + s * n, n);
    row::write<T, kLog, !kLog>(n, x + s * n, largest[s], kept(s), sum[s], y + s * n);
  }
}

/// The gradient of softmax of one row.
template <class T, bool kLog, class C = Compute<T>>
void softmax_backward_row(int64_t n, const T* dy, const T* y, T* dx) {
  const double total = row_sums<T, 1>(n, row::gradient_terms<T, kLog>(dy, y))[0];
  row::write_gradient<T, kLog>(n, dy, y, static_cast<C>(total), dx);
}

/// The same for kSide rows of up to kLongestTogether elements.
template <class T, bool kLog, class C = Compute<T>>
void softmax_backward_rows(int64_t n, const T* dy, const T* y, T* dx) {
  if (n <= kLongestShortGradient<T>) return softmax_backward_short_rows<T, kLog>(n, dy, y, dx);
  C total[kSide];
  FoldedLanes<T>([&](int64_t s) {
    return sum_lanes<T, 1>(0, n, row::gradient_terms<T, kLog>(dy + s * n, y + s * n))[0];
  }).add_up(total);
  for (int64_t s = 0; s < kSide; ++s) {
    row::fetch_next(dy + s * n, n);
    row::fetch_next(y + s * n, n);
    row::write_gradient<T, kLog>(n, dy + s * n, y + s * n, total[s], dx + s * n);
  }
}

/// The loss of a row of logits, and its statistics: the largest element, and the logarithm of the sum.
template <class T, class C = Compute<T>>
double cross_entropy_row(const T* x, int64_t n, int64_t label, C* statistics) {
  const C largest = Lanes<T>::largest(largest_lanes(x, n));
  const double log_sum = std::log(row_sums<T, 1>(n, row::powers<T, false>(x, largest))[0]);
  statistics[0] = largest;
  statistics[1] = static_cast<C>(log_sum);
  return log_sum - static_cast<double>(load(x + label) - largest);
}

/// The same for kSide rows of up to kLongestTogether elements.
template <class T, class C = Compute<T>>
void cross_entropy_rows(const T* x, int64_t n, const int64_t* labels, C* statistics, double* losses) {
  if (n <= kLongestShortRow<T>) return cross_entropy_short_rows(x, n, labels, statistics, losses);
  C largest[kSide], sum[kSide];
  FoldedLanes<T>([&](int64_t s) { return largest_lanes(x + s * n, n); }).find_largest(largest);
  FoldedLanes<T>([&](int64_t s) {
    return sum_lanes<T, 1>(0, n, row::powers<T, false>(x + s * n, largest[s]))[0];
  }).add_up(sum);
  for (int64_t s = 0; s < kSide; ++s) {
    const double log_sum = std::log(static_cast<double>(sum[s]));
    statistics[2 * s] = largest[s];
    statistics[2 * s + 1] = static_cast<C>(log_sum);
    losses[s] = log_sum - static_cast<double>(load(x + s * n + labels[s]) - largest[s]);
  }
}

/// The gradient but for the label's 1, for the gradient d of the loss.
template <class T, class C = Compute<T>>
void cross_entropy_backward_row(const T* x, int64_t n, const C* statistics, C d, T* dx) {
  using L = Lanes<T>;
  const C largest = statistics[0], log_sum = statistics[1];
  for_row<T>(n, [=](int64_t i, int64_t count) {
    L::store(dx + i, row::exp_below<T>((L::load(x + i, count) - largest) - log_sum) * d, count);
  });
}

/// The same for kSide rows of up to kLongestTogether elements.
template <class T, class C = Compute<T>>
void cross_entropy_backward_rows(const T* x, int64_t n, const C* statistics, const C* d, T* dx) {
  if (n <= kLongestShortGradient<T>) return cross_entropy_backward_short_rows(x, n, statistics, d, dx);
  for (int64_t s = 0; s < kSide; ++s) cross_entropy_backward_row(x + s * n, n, statistics + 2 * s, d[s], dx + s * n);
}

}  // namespace plumb::cpu
