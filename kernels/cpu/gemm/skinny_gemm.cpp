#include "kernels/cpu/gemm/skinny_gemm.h"

#include "kernels/cpu/nontemporal.h"
#include "kernels/cpu/range.h"
#include "kernels/cpu/simd.h"

namespace plumb::cpu {
namespace {

using simd::kLanes;
using simd::Vec;

// The rows of w, and of the skinny matrix, that are processed at once: their products and one vector of each fit in the
// registers.
constexpr int kStreams = 4, kRows = std::min(4, (simd::kRegisters - kStreams - 1) / kStreams);

// Terms of a sum that are added one after the other. Longer sums are added up from such parts, or they would lose the
// digits of each term.
constexpr int64_t kShort = 1024;

float sum_of(Vec v) {
  float s = 0;
  for (int64_t i = 0; i < kLanes; ++i) s += v[i];
  return s;
}

// y[r][s] = a_r . w_s over k numbers, for R rows of a and S of w.
template <int R, int S>
void dots(float* y, int64_t y_step, const float* a, const float* w, const float* bias, int64_t k) {
  float totals[R][S] = {};
  for (int64_t begin = 0; begin < k; begin += kLanes * kShort) {
    const int64_t end = std::min(k, begin + kLanes * kShort);
    Vec sums[R][S] = {};
    int64_t i = begin;
    const auto step = [&](auto load) {
      Vec from_w[S];
      for (int s = 0; s < S; ++s) from_w[s] = load(w + s * k + i);
      for (int r = 0; r < R; ++r) {
        const Vec from_a = load(a + r * k + i);
        for (int s = 0; s < S; ++s) sums[r][s] += from_a * from_w[s];
      }
    };
    for (; i + kLanes <= end; i += kLanes) step([](const float* p) { return simd::load(p); });
    if (i < end) step([n = end - i](const float* p) { return simd::load(p, n); });
    for (int r = 0; r < R; ++r) {
      for (int s = 0; s < S; ++s) totals[r][s] += sum_of(sums[r][s]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int s = 0; s < S; ++s) y[r * y_step + s] = totals[r][s] + (bias ? bias[s] : 0.0f);
  }
}

// Rows of sums over a range of columns, of which each is `step` after the one before.
struct Sums {
  float* data;
  int64_t step;
  float* row(int64_t r) const { return data + r * step; }
};

// y_r[j] += sum of a[r][s] w_s[j] over S rows of w, for j in a range.
template <int R, int S>
void add_rows(Sums y, const float* a, const float* w, int64_t n, int64_t k, Range columns) {
  Vec factors[R][S];
  for (int r = 0; r < R; ++r) {
    for (int s = 0; s < S; ++s) factors[r][s] = simd::broadcast(a + r * n + s);
  }
  int64_t j = columns.begin;
  const auto step = [&](auto load, auto store) {
    Vec from_w[S];
    for (int s = 0; s < S; ++s) from_w[s] = load(w + s * k + j);
    for (int r = 0; r < R; ++r) {
      float* const to = y.row(r) + j - columns.begin;
      Vec sum = load(to);
      for (int s = 0; s < S; ++s) sum += factors[r][s] * from_w[s];
      store(to, sum);
    }
  };
  for (; j + kLanes <= columns.end; j += kLanes) {
    step([](const float* p) { return simd::load(p); }, [](float* p, Vec v) { simd::store(p, v); });
  }
  if (const int64_t rest = columns.end - j; rest > 0) {
    step([rest](const float* p) { return simd::load(p, rest); }, [rest](float* p, Vec v) { simd::store(p, v, rest); });
  }
}

// to[j] = the sum of a[r][0] b[r][j] over R rows, for n numbers; unless `first`, adds to the old value of to[j].
template <int R>
void combine(float* to, const float* a, int64_t a_step, const float* b, int64_t b_step, int64_t n, bool first) {
  Vec factors[R];
  for (int r = 0; r < R; ++r) factors[r] = simd::broadcast(a + r * a_step);
  int64_t j = 0;
  const auto step = [&](auto load, auto store) {
    Vec sum = first ? Vec{} : load(to + j);
    for (int r = 0; r < R; ++r) sum += factors[r] * load(b + r * b_step + j);
    store(to + j, sum);
  };
  for (; j + kLanes <= n; j += kLanes) {
    step([](const float* p) { return simd::load(p); }, [](float* p, Vec v) { simd::store(p, v); });
  }
  if (const int64_t rest = n - j; rest > 0) {
    step([rest](const float* p) { return simd::load(p, rest); }, [rest](float* p, Vec v) { simd::store(p, v, rest); });
  }
}

// Both gradients for S rows of w and a range of columns j: dw_s[j] = the sum of dy[r][s] x_r[j] over R rows, and
// dx_r[j] += the sum of dy[r][s] w_s[j] over S rows.
template <int R, int S>
void both_gradients(Sums dx, float* dw, const float* dy, const float* x, const float* w, int64_t n, int64_t k,
                    Range columns, bool past_caches) {
  Vec factors[R][S];
  for (int r = 0; r < R; ++r) {
    for (int s = 0; s < S; ++s) factors[r][s] = simd::broadcast(dy + r * n + s);
  }
  const auto step = [&](int64_t j, auto load, auto store, auto store_dw) {
    Vec to_dw[S] = {}, from_w[S];
    for (int s = 0; s < S; ++s) from_w[s] = load(w + s * k + j);
    for (int r = 0; r < R; ++r) {
      const Vec from_x = load(x + r * k + j);
      float* const to = dx.row(r) + j - columns.begin;
      Vec sum = load(to);
      for (int s = 0; s < S; ++s) {
        sum += factors[r][s] * from_w[s];
        to_dw[s] += factors[r][s] * from_x;
      }
      store(to, sum);
    }
    for (int s = 0; s < S; ++s) store_dw(dw + s * k + j, to_dw[s]);
  };
  const auto load = [](const float* p) { return simd::load(p); };
  const auto store = [](float* p, Vec v) { simd::store(p, v); };
  const int64_t whole = columns.begin + columns.size() / kLanes * kLanes, rest = columns.end - whole;
  if (past_caches) {
    for (int64_t j = columns.begin; j < whole; j += kLanes)
      step(j, load, store, [](float* p, Vec v) { copy_nontemporal(p, v); });
  } else {
    for (int64_t j = columns.begin; j < whole; j += kLanes) step(j, load, store, store);
  }
  if (rest > 0) {
    const auto store_rest = [rest](float* p, Vec v) { simd::store(p, v, rest); };
    step(
        whole, [rest](const float* p) { return simd::load(p, rest); }, store_rest, store_rest);
  }
}

// Calls f.template operator()<R, S>() with R and S from r and s: R from 1 to kRows, S from 1 to kStreams.
template <class F>
void with_counts(int64_t r, int64_t s, const F& f) {
  const auto with_streams = [&]<int R>() {
    switch (s) {
      case 1: return f.template operator()<R, 1>();
      case 2: return f.template operator()<R, 2>();
      case 3: return f.template operator()<R, 3>();
      default: return f.template operator()<R, 4>();
    }
  };
  switch (r) {
    case 1: return with_streams.template operator()<1>();
    case 2: return with_streams.template operator()<2>();
    case 3: return with_streams.template operator()<std::min(3, kRows)>();
    default: return with_streams.template operator()<kRows>();
  }
}

// add(sums, begin, end) must add the terms [begin, end) to m rows of sums. m rows of y become the sums of n terms, in a
// range of columns: with more terms than kShort, of kMostSums sums at most.
constexpr int64_t kMostSums = 16384;
template <class Add>
void sum_in_parts(float* y, int64_t y_step, int64_t m, int64_t n, Range columns, const Add& add) {
  Unset<float, kMostSums> unset;
  const Sums first{y + columns.begin, y_step}, later{unset.data(), columns.size()};
  int64_t begin = 0;
  do {
    const Sums part = begin == 0 ? first : later;
    for (int64_t r = 0; r < m; ++r) std::fill_n(part.row(r), columns.size(), 0.0f);
    add(part, begin, std::min(n, begin + kShort));
    for (int64_t r = 0; r < m && begin > 0; ++r) {
      for (int64_t j = 0; j < columns.size(); ++j) first.row(r)[j] += later.row(r)[j];
    }
  } while ((begin += kShort) < n);
}

}  // namespace

void skinny_gemm_forward(float* y, const float* a, const float* w, const float* bias, int64_t m, int64_t n, int64_t k) {
  const int64_t blocks = ceil_div(n, kStreams);
  parallel_for(blocks, kGrainBytes / (kStreams * 4 * std::max<int64_t>(k, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t s = block * kStreams;
      for (int64_t r = 0; r < m; r += kRows) {  // after the first, the rows of w are in the caches
        with_counts(std::min<int64_t>(m - r, kRows), std::min<int64_t>(n - s, kStreams), [&]<int R, int S>() {
          dots<R, S>(y + r * n + s, n, a + r * k, w + s * k, bias ? bias + s : nullptr, k);
        });
      }
    }
  });
}

void skinny_gemm_backward_input(float* y, const float* a, const float* w, int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kColumns = 2048;  // processed at once, so that a row of y stays in the first-level cache
  const bool has_parts = n > kShort;
  const int64_t rows = has_parts ? std::min(m, kMostThinRows) : m;
  const int64_t width =
      has_parts ? std::min(kColumns, kMostSums / std::max<int64_t>(rows, 1) / kLanes * kLanes) : kColumns;
  const int64_t bytes_of_line = kLanes * 4 * std::max<int64_t>(n, 1);
  parallel_for(k, std::max<int64_t>(1, kGrainBytes / bytes_of_line) * kLanes, kLanes, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; j += width) {
      const Range columns{j, std::min(end, j + width)};
      for (int64_t first = 0; first < m; first += rows) {
        const int64_t count = std::min(rows, m - first);
        sum_in_parts(y + first * k, k, count, n, columns, [&](Sums sums, int64_t s, int64_t stop) {
          for (; s < stop; s += kStreams) {
            for (int64_t r = 0; r < count; r += kRows) {
              const float* const factors = a + (first + r) * n + s;
              with_counts(std::min<int64_t>(count - r, kRows), std::min<int64_t>(stop - s, kStreams),
                          [&]<int R, int S>() {
                            add_rows<R, S>({sums.row(r), sums.step}, factors, w + s * k, n, k, columns);
                          });
            }
          }
        });
      }
    }
  });
}

void skinny_gemm_backward_weight(float* w, const float* a, const float* b, int64_t m, int64_t n, int64_t k) {
  parallel_write(w, n * k, [&](int64_t begin, int64_t end, float* to) {
    while (begin < end) {
      const int64_t row = begin / k, column = begin % k, width = std::min(end - begin, k - column);
      for (int64_t r = 0; r < m; r += kRows) {
        with_counts(std::min<int64_t>(m - r, kRows), 1,
                    [&]<int R, int>() { combine<R>(to, a + r * n + row, n, b + r * k + column, k, width, r == 0); });
      }
      to += width;
      begin += width;
    }
  });
}

void skinny_gemm_backward(float* dx, float* dw, const float* dy, const float* x, const float* w, int64_t m, int64_t n,
                          int64_t k) {
  constexpr int64_t kColumns = 4096;  // processed at once, so that a row of dx stays in the first-level cache
  static_assert(detail::kMostJointRows * kColumns <= kMostSums);
  const int64_t bytes_of_line = kLanes * 4 * std::max<int64_t>(n, 1);
  const bool past_caches = n * k * 4 >= nontemporal_bytes && k % kLanes == 0;  // every row begins on a cache line
  parallel_for(k, std::max<int64_t>(1, kGrainBytes / bytes_of_line) * kLanes, kLanes, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; j += kColumns) {
      const Range columns{j, std::min(end, j + kColumns)};
      sum_in_parts(dx, k, m, n, columns, [&](Sums sums, int64_t s, int64_t stop) {
        for (; s < stop; s += kStreams) {
          with_counts(m, std::min<int64_t>(stop - s, kStreams), [&]<int R, int S>() {
            both_gradients<R, S>(sums, dw + s * k, dy + s, x, w + s * k, n, k, columns, past_caches);
          });
        }
      });
    }
    if (past_caches) nontemporal_fence();
  });
}

std::unique_ptr<Kernel> skinny_linear(InnerProduct which, const TensorSpec& x, const TensorSpec& w, bool bias) {
  if (x.dtype != DType::kF32 || x.shape[0] > kMostThinRows) return nullptr;
  return make_kernel("plumb:skinny_gemm", [=, m = x.shape[0], n = w.shape[0], k = w.shape[1]](const Launch& l) {
    auto* out = static_cast<float*>(l.out[0]);
    const auto *first = static_cast<const float*>(l.in[0]), *second = static_cast<const float*>(l.in[1]);
    switch (which) {
      case InnerProduct::kForward:
        return skinny_gemm_forward(out, first, second, bias ? static_cast<const float*>(l.in[2]) : nullptr, m, n, k);
      case InnerProduct::kBackwardInput: return skinny_gemm_backward_input(out, first, second, m, n, k);
      case InnerProduct::kBackwardWeight: return skinny_gemm_backward_weight(out, first, second, m, n, k);
    }
  });
}

std::unique_ptr<Kernel> skinny_linear_backward(const TensorSpec& x, const TensorSpec& w) {
  if (x.dtype != DType::kF32 || x.shape[0] < 1 || x.shape[0] > detail::kMostJointRows) return nullptr;
  return make_kernel("plumb:skinny_gemm_joint", [m = x.shape[0], n = w.shape[0], k = w.shape[1]](const Launch& l) {
    const auto in = [&](size_t i) { return static_cast<const float*>(l.in[i]); };
    skinny_gemm_backward(static_cast<float*>(l.out[0]), static_cast<float*>(l.out[1]), in(0), in(1), in(2), m, n, k);
  });
}

}  // namespace plumb::cpu
