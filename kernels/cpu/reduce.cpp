#include "kernels/reduce.h"

#include <limits>

#include "kernels/cpu/element.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduce_plan.h"

namespace plumb::cpu {
namespace {

template <class T>
struct Sum {
  using Total = double;
  static constexpr Compute<T> kStart = 0;
  static Compute<T> combine(Compute<T> a, Compute<T> v) { return a + v; }
  static Total total(Total a, Compute<T> v) { return a + static_cast<double>(v); }
};
template <class T>
struct Max {
  using Total = Compute<T>;
  static constexpr Compute<T> kStart = -std::numeric_limits<Compute<T>>::infinity();
  static Compute<T> combine(Compute<T> a, Compute<T> v) { return v > a || v != v ? v : a; }
  static Total total(Total a, Compute<T> v) { return combine(a, v); }
};

// The innermost dimension is reduced: each output is gathered from runs of x. Work is cut into pieces of a fixed size,
// so that the result does not depend on the number of threads.
template <class T, class Op>
class RunsKernel final : public Kernel {
 public:
  RunsKernel(ReducePlan plan, double scale) : Kernel("plumb:reduce:runs"), plan_(std::move(plan)), scale_(scale) {
    run_ = plan_.reduced[0].extent;
    const int64_t runs = plan_.terms / std::max<int64_t>(run_, 1);
    if (run_ >= kPiece) {
      cuts_ = (run_ + kPiece - 1) / kPiece;
      runs_in_piece_ = 1;
    } else {
      runs_in_piece_ = std::max<int64_t>(1, kPiece / std::max<int64_t>(run_, 1));
    }
    pieces_ = (runs + runs_in_piece_ - 1) / runs_in_piece_ * cuts_;
    info().workspace_bytes = pieces_ == 1 ? 0 : static_cast<size_t>(plan_.outputs * pieces_) * sizeof(Total);
  }
  void run(const Launch& l) const override {
    const auto* x = static_cast<const T*>(l.in[0]);
    auto* y = static_cast<T*>(l.out[0]);
    auto* partial = static_cast<Total*>(l.workspace);
    const int64_t grain =
        std::max<int64_t>(1, kPiece / std::max<int64_t>(plan_.terms / std::max<int64_t>(pieces_, 1), 1));
    const auto write = [&](int64_t o, Total t) {
      store(y + offset_of(plan_.kept, o, &Axis::y_stride), static_cast<Compute<T>>(t * static_cast<Total>(scale_)));
    };
    parallel_for(plan_.outputs * pieces_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Total t = piece(x + offset_of(plan_.kept, i / pieces_, &Axis::x_stride), i % pieces_);
        if (pieces_ == 1) {
          write(i, t);
        } else {
          partial[i] = t;
        }
      }
    });
    if (pieces_ == 1) return;
    for (int64_t o = 0; o < plan_.outputs; ++o) {
      Total t = Op::kStart;
      for (int64_t p = 0; p < pieces_; ++p) {
        const Total part = partial[o * pieces_ + p];
        if constexpr (std::is_same_v<Op, Sum<T>>) {
          t += part;
        } else {
          t = Op::combine(t, part);
        }
      }
      write(o, t);
    }
  }

 private:
  using Total = typename Op::Total;
  static constexpr int64_t kPiece = 32768;

  Total piece(const T* x, int64_t p) const {
    const int64_t runs = plan_.terms / std::max<int64_t>(run_, 1);
    const int64_t first = p / cuts_ * runs_in_piece_, last = std::min(runs, first + runs_in_piece_);
    const int64_t begin = cuts_ == 1 ? 0 : p % cuts_ * kPiece, end = cuts_ == 1 ? run_ : std::min(run_, begin + kPiece);
    const std::span<const Axis> outer(plan_.reduced.data() + 1, plan_.reduced.size() - 1);
    Total t = Op::kStart;
    for (int64_t r = first; r < last; ++r)
      t = add_run(t, x + offset_of(outer, r, &Axis::x_stride) + begin, end - begin);
    return t;
  }
  static Total add_run(Total t, const T* x, int64_t n) {
    constexpr int kLanes = 64;
    int64_t i = 0;
    while (n - i >= kLanes) {
      Compute<T> lane[kLanes];
      for (Compute<T>& v : lane) v = Op::kStart;
      const int64_t stop = std::min(n, i + 4096);  // short sums in the narrow type, then one in the wide
      for (; i + kLanes <= stop; i += kLanes) {
        for (int k = 0; k < kLanes; ++k) lane[k] = Op::combine(lane[k], load(x + i + k));
      }
      for (int width = kLanes / 2; width > 0; width /= 2) {
        for (int k = 0; k < width; ++k) lane[k] = Op::combine(lane[k], lane[k + width]);
      }
      t = Op::total(t, lane[0]);
    }
    for (; i < n; ++i) t = Op::total(t, load(x + i));
    return t;
  }

  ReducePlan plan_;
  double scale_;
  int64_t run_ = 1, cuts_ = 1, runs_in_piece_ = 1, pieces_ = 1;
};

// The innermost dimension is kept: rows of x are added up. Pieces of rows are added into rows of their own first.
template <class T, class Op>
class RowsKernel final : public Kernel {
 public:
  RowsKernel(ReducePlan plan, double scale) : Kernel("plumb:reduce:rows"), plan_(std::move(plan)), scale_(scale) {
    width_ = plan_.kept.empty() ? 1 : plan_.kept[0].extent;
    const int64_t rows_of_64k = std::max<int64_t>(16, 65536 / std::max<int64_t>(width_, 1));
    pieces_ = std::clamp<int64_t>((plan_.terms + rows_of_64k - 1) / rows_of_64k, 1, 64);
    outer_ = plan_.outputs / std::max<int64_t>(width_, 1);
    info().workspace_bytes = static_cast<size_t>(2 * outer_ * pieces_ * width_) * sizeof(C);
  }
  void run(const Launch& l) const override {
    const auto* x = static_cast<const T*>(l.in[0]);
    auto* partial = static_cast<C*>(l.workspace);
    const std::span<const Axis> outer_axes = kept_outer();
    const int64_t work = std::max<int64_t>(plan_.terms * width_ / pieces_, 1);
    parallel_for(outer_ * pieces_, std::max<int64_t>(1, 16384 / work), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t p = i % pieces_;
        add_rows(x + offset_of(outer_axes, i / pieces_, &Axis::x_stride), plan_.terms * p / pieces_,
                 plan_.terms * (p + 1) / pieces_, partial + i * width_, partial + (outer_ * pieces_ + i) * width_);
      }
    });
    auto* y = static_cast<T*>(l.out[0]);
    const int64_t y_step = plan_.kept.empty() ? 1 : plan_.kept[0].y_stride;
    parallel_for(outer_, std::max<int64_t>(1, 16384 / std::max<int64_t>(width_ * pieces_, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t o = begin; o < end; ++o) {
                     C* first = partial + o * pieces_ * width_;
                     for (int64_t p = 1; p < pieces_; ++p) {
                       const C* row = first + p * width_;
                       for (int64_t j = 0; j < width_; ++j) first[j] = Op::combine(first[j], row[j]);
                     }
                     T* to = y + offset_of(outer_axes, o, &Axis::y_stride);
                     for (int64_t j = 0; j < width_; ++j)
                       store(to + j * y_step, static_cast<C>(first[j] * static_cast<C>(scale_)));
                   }
                 });
  }

 private:
  using C = Compute<T>;
  std::span<const Axis> kept_outer() const {
    return plan_.kept.empty() ? std::span<const Axis>() : std::span(plan_.kept).subspan(1);
  }
  // Few rows at a time, so that long sums do not lose their last digits.
  void add_rows(const T* x, int64_t first, int64_t last, C* total, C* few) const {
    constexpr int64_t kFew = 64;
    for (int64_t j = 0; j < width_; ++j) total[j] = Op::kStart;
    while (first < last) {
      const int64_t stop = std::min(last, first + kFew);
      for (int64_t j = 0; j < width_; ++j) few[j] = Op::kStart;
      for (; first < stop; ++first) {
        const T* row = x + offset_of(plan_.reduced, first, &Axis::x_stride);
        for (int64_t j = 0; j < width_; ++j) few[j] = Op::combine(few[j], load(row + j));
      }
      for (int64_t j = 0; j < width_; ++j) total[j] = Op::combine(total[j], few[j]);
    }
  }

  ReducePlan plan_;
  double scale_;
  int64_t width_ = 1, outer_ = 1, pieces_ = 1;
};

template <class T, class Op>
std::unique_ptr<Kernel> make_reduce(const ReducePlan& plan, double scale) {
  if (plan.inner_reduced) return std::make_unique<RunsKernel<T, Op>>(plan, scale);
  return std::make_unique<RowsKernel<T, Op>>(plan, scale);
}

}  // namespace
}  // namespace plumb::cpu

namespace plumb {

void Reduce::cpu(const Problem<Params>& p, Candidates& candidates) {
  const TensorSpec &x = p.in[0], &y = p.out[0];
  const cpu::ReducePlan plan(x, y, p.params.dims);
  const double scale = p.params.what == Reduction::kMean ? 1.0 / static_cast<double>(plan.terms) : 1.0;
  const bool is_max = p.params.what == Reduction::kMax;
  cpu::dispatch_compute(x.dtype, [&]<class T>() {
    candidates.add("loop", [=] {
      return is_max ? cpu::make_reduce<T, cpu::Max<T>>(plan, 1.0) : cpu::make_reduce<T, cpu::Sum<T>>(plan, scale);
    });
  });
}

}  // namespace plumb
