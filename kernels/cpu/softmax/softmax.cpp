#include "kernels/softmax.h"

#include "kernels/cpu/nontemporal.h"
#include "kernels/cpu/onednn/dnnl.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduction/simd_reduce.h"
#include "kernels/cpu/softmax/rows.h"
#include "kernels/cpu/softmax/softmax_onednn.h"
#include "kernels/functors/math.h"

namespace plumb::cpu {

namespace math = functors::math;

namespace {

// A dense tensor as (outer, extent, inner) in memory; `extent` is that of the softmax dimension.
struct Slices {
  int64_t outer = 0, extent = 0, inner = 1;
  Slices(const TensorSpec& x, int dim) {
    if (x.numel() == 0) return;
    extent = x.shape[dim];
    inner = strides_of(x)[dim];
    outer = x.numel() / (extent * inner);
  }
};

// The softmax dimension is innermost: row by row.

template <class T, bool kLog, bool kBackward>
std::unique_ptr<Kernel> rows_kernel(int64_t rows, int64_t n) {
  return make_kernel("plumb:softmax:rows", [rows, n](const Launch& l) {
    const bool streams = rows * n * static_cast<int64_t>(sizeof(T)) >= nontemporal_bytes;
    const auto in = [&](size_t i, int64_t row) { return static_cast<const T*>(l.in[i]) + row * n; };
    const auto write = [&](int64_t row, int64_t count, const auto& values) {
      const Source sources[] = {{in(0, row)}, {in(kBackward ? 1 : 0, row)}};
      write_past(static_cast<T*>(l.out[0]) + row * n, count * n, streams, {sources, kBackward ? 2u : 1u}, values);
    };
    if constexpr (kBackward) {
      const auto together = [&](int64_t i) {
        write(i, kSide, [&](T* to) { softmax_backward_rows<T, kLog>(n, in(0, i), in(1, i), to); });
      };
      const auto one = [&](int64_t i) {
        write(i, 1, [&](T* to) { softmax_backward_row<T, kLog>(n, in(0, i), in(1, i), to); });
      };
      by_rows<T>(rows, n, streams, together, one);
    } else {
      const auto together = [&](int64_t i) { write(i, kSide, [&](T* to) { softmax_rows<T, kLog>(n, in(0, i), to); }); };
      const auto one = [&](int64_t i) { write(i, 1, [&](T* to) { softmax_row<T, kLog>(n, in(0, i), to); }); };
      by_rows<T>(rows, n, streams, together, one);
    }
  });
}

// Another dimension: up to kColumns neighbouring columns; `step` and `to_step` are the distances along the softmax
// dimension.

template <class T, bool kLog>
void forward_columns(int64_t n, int64_t step, int64_t width, const T* x, T* y, int64_t to_step) {
  using C = Compute<T>;
  C largest[kColumns], total[kColumns];
  std::fill_n(largest, width, -std::numeric_limits<C>::infinity());
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t j = 0; j < width; ++j) {
      const C v = load(x + k * step + j);
      largest[j] = v > largest[j] ? v : largest[j];
    }
  }
  const auto power = [&](int64_t k, int64_t j) { return math::exp_below(load(x + k * step + j) - largest[j]); };
  constexpr bool kWait = !kLog && std::is_same_v<T, C>;
  column_sums<C>(n, width, total, [&](int64_t k, int64_t j) {
    const C e = power(k, j);
    if constexpr (kWait) y[k * to_step + j] = e;
    return e;
  });
#pragma GCC ivdep
  for (int64_t j = 0; j < width; ++j) total[j] = kLog ? math::log(total[j]) : 1 / total[j];
  for (int64_t k = 0; k < n; ++k) {
#pragma GCC ivdep
    for (int64_t j = 0; j < width; ++j) {
      T* const to = y + k * to_step + j;
      if constexpr (kLog) {
        store(to, (load(x + k * step + j) - largest[j]) - total[j]);
      } else {
        store(to, (kWait ? load(to) : power(k, j)) * total[j]);
      }
    }
  }
}

template <class T, bool kLog>
void backward_columns(int64_t n, int64_t step, int64_t width, const T* dy, const T* y, T* dx, int64_t to_step) {
  using C = Compute<T>;
  C total[kColumns];
  column_sums<C>(n, width, total, [&](int64_t k, int64_t j) {
    return kLog ? load(dy + k * step + j) : load(dy + k * step + j) * load(y + k * step + j);
  });
  for (int64_t k = 0; k < n; ++k) {
#pragma GCC ivdep
    for (int64_t j = 0; j < width; ++j) {
      const int64_t at = k * step + j;
      const C d = load(dy + at), v = load(y + at);
      store(dx + k * to_step + j, kLog ? d - math::exp_below(v) * total[j] : v * (d - total[j]));
    }
  }
}

template <class T, bool kLog, bool kBackward>
std::unique_ptr<Kernel> columns_kernel(const Slices& s) {
  return make_kernel("plumb:softmax:columns", [s](const Launch& l) {
    constexpr int64_t kSize = sizeof(T), kStaged = (64 << 10) / kSize;
    const bool are_wide = s.inner * kSize >= 256 && s.extent * kColumns <= kStaged;  // whole lines, in a buffer
    const bool streams = are_wide && s.outer * s.extent * s.inner * kSize >= nontemporal_bytes;
    const int64_t blocks = ceil_div(s.inner, kColumns);
    const int64_t bytes = s.extent * std::min(s.inner, kColumns) * kSize;
    parallel_for(s.outer * blocks, kGrainBytes / std::max<int64_t>(bytes, 1), [&](int64_t begin, int64_t end) {
      Unset<T, kStaged> unset;
      T* const stage = unset.data();
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % blocks * kColumns, width = std::min(kColumns, s.inner - first);
        const int64_t at = i / blocks * s.extent * s.inner + first;
        const auto in = [&](size_t k) { return static_cast<const T*>(l.in[k]) + at; };
        auto* const out = static_cast<T*>(l.out[0]) + at;
        T* const to = streams ? stage : out;
        const int64_t to_step = streams ? kColumns : s.inner;
        if constexpr (kBackward) {
          backward_columns<T, kLog>(s.extent, s.inner, width, in(0), in(1), to, to_step);
        } else {
          forward_columns<T, kLog>(s.extent, s.inner, width, in(0), to, to_step);
        }
        for (int64_t k = 0; streams && k < s.extent; ++k) {
          const Source sources[] = {{in(0) + k * s.inner}, {in(kBackward ? 1 : 0) + k * s.inner}};
          copy_nontemporal(reinterpret_cast<uint8_t*>(out + k * s.inner),
                           reinterpret_cast<const uint8_t*>(stage + k * kColumns), width * kSize,
                           {sources, kBackward ? 2u : 1u}, kColumns * kSize);
        }
      }
      if (streams) nontemporal_fence();
    });
  });
}

template <class T, bool kLog, bool kBackward>
std::unique_ptr<Kernel> softmax_kernel(const Slices& s) {
  const bool has_rows = s.inner == 1 && s.extent > 0;
  return has_rows ? rows_kernel<T, kLog, kBackward>(s.outer, s.extent) : columns_kernel<T, kLog, kBackward>(s);
}

// Gradients of rows up to the first length, and along dimensions beyond the second, are faster by our own kernel.
constexpr int64_t kVeryShortRow = 32, kShortRow = 512;

template <bool kBackward>
void offer(const Problem<SoftmaxParams>& p, Candidates& candidates) {
  const Slices slices(p.in[0], p.params.dim);
  dispatch_compute(p.out[0].dtype, [&]<class T>() {
    const Candidates::Make own = [=, log = p.params.log] {
      return log ? softmax_kernel<T, true, kBackward>(slices) : softmax_kernel<T, false, kBackward>(slices);
    };
    // oneDNN's turns NaN into numbers, and is not fast enough along rows to pay for the look at x; nor for that of
    // log_softmax's gradient. Very short rows it does one by one.
    const bool is_row = slices.inner == 1, is_checked = !kBackward || p.params.log;
    const bool is_of_middle_length = slices.extent <= kShortRow && !(is_row && slices.extent <= kVeryShortRow);
    const bool is_own_first = (is_row && is_checked) || (!is_of_middle_length && !std::is_same_v<T, Bfloat16>);
    if (is_own_first) candidates.add("loop", own);
    candidates.add(Provider::kOneDnn, "onednn", [=] {
      return declining([&] { return kBackward ? onednn_softmax_backward(p, own) : onednn_softmax_forward(p, own); });
    });
    if (!is_own_first) candidates.add("loop", own);
  });
}

}  // namespace
}  // namespace plumb::cpu

namespace plumb {

void SoftmaxForward::cpu(const Problem<Params>& p, Candidates& c) { cpu::offer<false>(p, c); }
void SoftmaxBackward::cpu(const Problem<Params>& p, Candidates& c) { cpu::offer<true>(p, c); }

}  // namespace plumb
