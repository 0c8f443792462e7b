#include <limits>
#include <type_traits>

#include "kernels/cpu/element.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduction/reduce_plan.h"
#include "kernels/cpu/reduction/runs.h"
#include "kernels/cpu/reduction/simd_reduce.h"
#include "kernels/reduce.h"

namespace plumb::cpu {
namespace {

class ArgmaxOffsets {  // offsets of the reduced elements in row-major order of their logical dimensions
 public:
  ArgmaxOffsets(const TensorSpec& x, uint32_t dims) {
    const Strides strides = strides_of(x);
    for (int d = x.rank() - 1; d >= 0; --d) {
      if (!(dims >> d & 1) || x.shape[d] == 1) continue;
      if (!axes_.empty() && strides[d] == axes_.back().x_stride * axes_.back().extent) {
        axes_.back().extent *= x.shape[d];
      } else {
        axes_.push_back({x.shape[d], strides[d], 0});
      }
    }
  }
  int64_t operator()(int64_t i) const {
    return axes_.size() == 1 ? i * axes_[0].x_stride : offset_of(axes_, i, &Axis::x_stride);
  }
  // The distance between consecutive elements if it is constant; otherwise 0.
  int64_t step() const { return axes_.size() == 1 ? axes_[0].x_stride : 0; }

 private:
  std::vector<Axis> axes_;
};

// The index of the first of the largest of n neighbours, or of the first NaN: finds the value, then its index.
template <class T>
int64_t argmax_of_row(int64_t n, const T* x) {
  using C = Compute<T>;
  const auto at = [&](int64_t i) { return load(x + i); };
  const C largest = simd_max<C>(n, at, [](C a, C v) { return v > a || v != v ? v : a; });
  const auto is_it = [&](int64_t i) { return largest == largest ? at(i) == largest : at(i) != at(i); };
  int64_t first = 0;
  for (bool is_near = false; first + kReduceWidth < n && !is_near; first += is_near ? 0 : kReduceWidth) {
    for (int64_t k = 0; k < kReduceWidth; ++k) is_near |= is_it(first + k);
  }
  while (!is_it(first)) ++first;
  return first;
}

// Which of the k-th elements of some columns are larger than what came before, or the first NaN.
template <class T, class I>
void look_at(I k, const T* row, int64_t width, Compute<T>* largest, I* best) {
  for (int64_t j = 0; j < width; ++j) {
    const Compute<T> v = load(row + j), old = largest[j];
    const bool is_larger = (v > old || v != v) && old == old;
    largest[j] = is_larger ? v : old;
    best[j] = is_larger ? k : best[j];
  }
}

// The same for up to kColumns neighbouring columns; `step` is the distance along the reduced dimension.
template <class T, class I>
void argmax_of_columns(I n, int64_t step, int64_t width, const T* x, I* best) {
  Compute<T> largest[kColumns];
  std::fill_n(best, width, 0);
  for (int64_t j = 0; j < width; ++j) largest[j] = load(x + j);
  for (I k = 1; k < n; ++k) look_at(k, x + k * step, width, largest, best);
}

// The same for kSide short rows, `step` apart.
template <class T, class I>
void argmax_of_rows(I n, int64_t step, const T* x, I* best) {
  Compute<T> largest[kSide];
  std::fill_n(best, kSide, 0);
  std::fill_n(largest, kSide, -std::numeric_limits<Compute<T>>::infinity());
  side_by_side(x, step, n, [&](int64_t k, const T* row) { look_at(static_cast<I>(k), row, kSide, largest, best); });
}

// How elements are visited. If neither rows nor columns are contiguous, they are visited one by one.
enum class Access : uint8_t { kElements, kRows, kColumns };

template <class T>
class ArgmaxKernel final : public Kernel {
 public:
  ArgmaxKernel(const TensorSpec& x, ReducePlan plan, uint32_t dims)
      : Kernel("plumb:argmax"), plan_(std::move(plan)), offset_(x, dims) {
    if constexpr (is_floating_point) {
      if (offset_.step() == 1) walk_ = Access::kRows;
      if (offset_.step() > 1 && !plan_.inner_reduced && plan_.terms <= std::numeric_limits<Index>::max())
        walk_ = Access::kColumns;
    }
    info().name += walk_ == Access::kRows ? ":rows" : walk_ == Access::kColumns ? ":columns" : ":elements";
  }
  void run(const Launch& l) const override {
    const auto* x = static_cast<const T*>(l.in[0]);
    auto* y = static_cast<int64_t*>(l.out[0]);
    const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(plan_.terms, 1));
    parallel_for(plan_.outputs, grain, [&](int64_t begin, int64_t end) {
      if constexpr (is_floating_point) {
        if (walk_ == Access::kColumns) return columns(begin, end, x, y);
        if (walk_ == Access::kRows && plan_.terms <= kShortest && plan_.kept.size() == 1) {
          begin = rows(begin, end, x, y);  // the last few one by one
        }
      }
      for (int64_t o = begin; o < end; ++o) {
        const T* from = x + offset_of(plan_.kept, o, &Axis::x_stride);
        y[offset_of(plan_.kept, o, &Axis::y_stride)] = of_one(from);
      }
    });
  }

 private:
  static constexpr bool is_floating_point = !std::is_integral_v<T>;
  static constexpr int64_t kShortest = 256;
  using Index = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;

  int64_t of_one(const T* x) const {
    if constexpr (is_floating_point) {
      if (walk_ == Access::kRows) return argmax_of_row(plan_.terms, x);
    }
    int64_t best = 0;
    auto largest = load(x);
    for (int64_t i = 1; i < plan_.terms && largest == largest; ++i) {
      const auto v = load(x + offset_(i));
      if (v > largest || v != v) {
        largest = v;
        best = i;
      }
    }
    return best;
  }

  // As many as come in groups of kSide; returns the first of the others.
  int64_t rows(int64_t begin, int64_t end, const T* x, int64_t* y) const {
    const Axis& axis = plan_.kept[0];
    for (; begin + kSide <= end; begin += kSide) {
      Index best[kSide];
      argmax_of_rows(static_cast<Index>(plan_.terms), axis.x_stride, x + begin * axis.x_stride, best);
      for (int64_t s = 0; s < kSide; ++s) y[(begin + s) * axis.y_stride] = best[s];
    }
    return begin;
  }

  void columns(int64_t begin, int64_t end, const T* x, int64_t* y) const {
    const Axis& inner = plan_.kept[0];
    for (int64_t o = begin, n; o < end; o += n) {
      n = std::min({kColumns, end - o, inner.extent - o % inner.extent});
      Index best[kColumns];
      argmax_of_columns(static_cast<Index>(plan_.terms), offset_.step(), n,
                        x + offset_of(plan_.kept, o, &Axis::x_stride), best);
      int64_t* to = y + offset_of(plan_.kept, o, &Axis::y_stride);
      for (int64_t j = 0; j < n; ++j) to[j * inner.y_stride] = best[j];
    }
  }

  ReducePlan plan_;
  ArgmaxOffsets offset_;
  Access walk_ = Access::kElements;
};

}  // namespace
}  // namespace plumb::cpu

namespace plumb {

void Argmax::cpu(const Problem<Params>& p, Candidates& candidates) {
  const TensorSpec& x = p.in[0];
  const cpu::ReducePlan plan(x, p.out[0], p.params.dims);
  detail::dispatch_numbers(x.dtype, [&]<class T>() {
    candidates.add("loop", [=, dims = p.params.dims] { return std::make_unique<cpu::ArgmaxKernel<T>>(x, plan, dims); });
  });
}

}  // namespace plumb
