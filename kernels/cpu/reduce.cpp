#include "kernels/reduce.h"

#include <limits>

#include "kernels/cpu/element.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided.h"

namespace plumb::cpu {
namespace {

struct Axis {
  int64_t extent, x_stride, y_stride;
};

// The dimensions of x in memory order, innermost first and merged, sorted into kept and reduced ones.
struct Plan {
  std::vector<Axis> kept, reduced;
  bool inner_reduced = false;  // whether the innermost dimension of x is reduced
  int64_t outputs = 1, terms = 1;

  Plan(const TensorSpec& x, const TensorSpec& y, uint32_t dims) {
    Strides ys = strides_of(y);
    for (int d = 0; d < x.rank(); ++d) {
      if (dims >> d & 1) ys.of[d] = 0;
    }
    const auto loop = strided_loop<2>(x, {strides_of(x), ys});
    for (int d = 0; d < loop.rank; ++d) {
      const auto i = static_cast<size_t>(d);
      const Axis axis{loop.extent[d], loop.stride[0][i], loop.stride[1][i]};
      const bool is_reduced = axis.y_stride == 0 && axis.extent != 1;
      if (d == 0) inner_reduced = is_reduced;
      (is_reduced ? reduced : kept).push_back(axis);
      (is_reduced ? terms : outputs) *= axis.extent;
    }
  }
};

int64_t offset_of(std::span<const Axis> axes, int64_t index, int64_t Axis::*stride) {
  int64_t at = 0;
  for (const Axis& a : axes) {
    at += index % a.extent * (a.*stride);
    index /= a.extent;
  }
  return at;
}

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
  RunsKernel(Plan plan, double scale) : Kernel("plumb:reduce:runs"), plan_(std::move(plan)), scale_(scale) {
    run_ = plan_.reduced.empty() ? 1 : plan_.reduced[0].extent;
    const int64_t runs = plan_.terms / std::max<int64_t>(run_, 1);
    if (run_ >= kPiece) {
      cuts_ = (run_ + kPiece - 1) / kPiece;
      runs_in_piece_ = 1;
    } else {
      runs_in_piece_ = std::max<int64_t>(1, kPiece / std::max<int64_t>(run_, 1));
    }
    pieces_ = (runs + runs_in_piece_ - 1) / runs_in_piece_ * cuts_;
    info().workspace_bytes = static_cast<size_t>(plan_.outputs * pieces_) * sizeof(Total);
  }
  void run(const Launch& l) const override {
    const auto* x = static_cast<const T*>(l.in[0]);
    auto* y = static_cast<T*>(l.out[0]);
    auto* partial = static_cast<Total*>(l.workspace);
    const int64_t grain =
        std::max<int64_t>(1, kPiece / std::max<int64_t>(plan_.terms / std::max<int64_t>(pieces_, 1), 1));
    parallel_for(plan_.outputs * pieces_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        partial[i] = piece(x + offset_of(plan_.kept, i / pieces_, &Axis::x_stride), i % pieces_);
      }
    });
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
      store(y + offset_of(plan_.kept, o, &Axis::y_stride), static_cast<Compute<T>>(t * static_cast<Total>(scale_)));
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

  Plan plan_;
  double scale_;
  int64_t run_ = 1, cuts_ = 1, runs_in_piece_ = 1, pieces_ = 1;
};

// The innermost dimension is kept: rows of x are added up. Pieces of rows are added into rows of their own first.
template <class T, class Op>
class RowsKernel final : public Kernel {
 public:
  RowsKernel(Plan plan, double scale) : Kernel("plumb:reduce:rows"), plan_(std::move(plan)), scale_(scale) {
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

  Plan plan_;
  double scale_;
  int64_t width_ = 1, outer_ = 1, pieces_ = 1;
};

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

 private:
  std::vector<Axis> axes_;
};

template <class T>
class ArgmaxKernel final : public Kernel {
 public:
  ArgmaxKernel(const TensorSpec& x, Plan plan, uint32_t dims)
      : Kernel("plumb:argmax"), plan_(std::move(plan)), offset_(x, dims) {}
  void run(const Launch& l) const override {
    const auto* x = static_cast<const T*>(l.in[0]);
    auto* y = static_cast<int64_t*>(l.out[0]);
    parallel_for(plan_.outputs, std::max<int64_t>(1, 16384 / std::max<int64_t>(plan_.terms, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t o = begin; o < end; ++o) {
                     const T* from = x + offset_of(plan_.kept, o, &Axis::x_stride);
                     int64_t best = 0;
                     auto largest = load(from);
                     for (int64_t i = 1; i < plan_.terms && largest == largest; ++i) {
                       const auto v = load(from + offset_(i));
                       if (v > largest || v != v) {
                         largest = v;
                         best = i;
                       }
                     }
                     y[offset_of(plan_.kept, o, &Axis::y_stride)] = best;
                   }
                 });
  }

 private:
  Plan plan_;
  ArgmaxOffsets offset_;
};

template <class T, class Op>
std::unique_ptr<Kernel> make_reduce(const Plan& plan, double scale) {
  if (plan.inner_reduced) return std::make_unique<RunsKernel<T, Op>>(plan, scale);
  return std::make_unique<RowsKernel<T, Op>>(plan, scale);
}

template <class T>
class MaxBackwardKernel final
    : public Kernel {  // two passes over each group of equals would need a plan; counting is simple
 public:
  MaxBackwardKernel(const TensorSpec& x, const TensorSpec& y, uint32_t dims)
      : Kernel("plumb:max_backward"), plan_(x, y, dims) {}
  void run(const Launch& l) const override {
    const auto *dy = static_cast<const T*>(l.in[0]), *x = static_cast<const T*>(l.in[1]),
               *y = static_cast<const T*>(l.in[2]);
    auto* dx = static_cast<T*>(l.out[0]);
    parallel_for(plan_.outputs, std::max<int64_t>(1, 8192 / std::max<int64_t>(plan_.terms, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t o = begin; o < end; ++o) {
                     const int64_t from = offset_of(plan_.kept, o, &Axis::x_stride),
                                   to = offset_of(plan_.kept, o, &Axis::y_stride);
                     const auto largest = load(y + to);
                     const auto is_max = [&](Compute<T> v) { return v == largest || (v != v && largest != largest); };
                     int64_t equals = 0;
                     for (int64_t i = 0; i < plan_.terms; ++i) {
                       equals += is_max(load(x + from + offset_of(plan_.reduced, i, &Axis::x_stride)));
                     }
                     const auto share = load(dy + to) / static_cast<Compute<T>>(std::max<int64_t>(equals, 1));
                     for (int64_t i = 0; i < plan_.terms; ++i) {
                       const int64_t at = from + offset_of(plan_.reduced, i, &Axis::x_stride);
                       store(dx + at, is_max(load(x + at)) ? share : Compute<T>(0));
                     }
                   }
                 });
  }

 private:
  Plan plan_;
};

template <class T>
class ExpandKernel final : public Kernel {
 public:
  explicit ExpandKernel(const StridedLoop<1>& loop) : Kernel("plumb:expand"), loop_(loop) {}
  void run(const Launch& l) const override {
    const int64_t width = loop_.extent[0], step = loop_.stride[0][0];
    const int64_t grain =
        std::max<int64_t>(1, kGrainBytes / static_cast<int64_t>(sizeof(T)) / std::max<int64_t>(width, 1));
    parallel_for(loop_.rows(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* from = static_cast<const T*>(l.in[0]) + loop_.row_offsets(row)[0];
        T* to = static_cast<T*>(l.out[0]) + row * width;
        if (step == 0) {
          std::fill_n(to, width, *from);
        } else {
          for (int64_t i = 0; i < width; ++i) to[i] = from[i * step];
        }
      }
    });
  }

 private:
  StridedLoop<1> loop_;
};

}  // namespace
}  // namespace plumb::cpu

namespace plumb {

void Reduce::cpu(const Problem<Params>& p, Candidates& candidates) {
  const TensorSpec &x = p.in[0], &y = p.out[0];
  cpu::Plan plan(x, y, p.params.dims);
  if (p.params.what == Reduction::kArgmax) {
    const auto add = [&]<class T>() {
      candidates.add("loop",
                     [=, dims = p.params.dims] { return std::make_unique<cpu::ArgmaxKernel<T>>(x, plan, dims); });
    };
    if (!cpu::dispatch_compute(x.dtype, add)) {
      if (x.dtype == DType::kI32) add.template operator()<int32_t>();
      if (x.dtype == DType::kI64) add.template operator()<int64_t>();
      if (x.dtype == DType::kU8) add.template operator()<uint8_t>();
    }
    return;
  }
  const double scale = p.params.what == Reduction::kMean ? 1.0 / static_cast<double>(plan.terms) : 1.0;
  const bool is_max = p.params.what == Reduction::kMax;
  cpu::dispatch_compute(x.dtype, [&]<class T>() {
    candidates.add("loop", [=] {
      return is_max ? cpu::make_reduce<T, cpu::Max<T>>(plan, 1.0) : cpu::make_reduce<T, cpu::Sum<T>>(plan, scale);
    });
  });
}

void MaxBackward::cpu(const Problem<NoParams>& p, Candidates& candidates) {
  const TensorSpec &x = p.in[1], &y = p.in[2];
  uint32_t dims = 0;
  for (int d = 0; d < x.rank(); ++d) dims |= y.shape[d] == 1 && x.shape[d] != 1 ? 1u << d : 0u;
  cpu::dispatch_compute(x.dtype, [&]<class T>() {
    candidates.add("loop", [=] { return std::make_unique<cpu::MaxBackwardKernel<T>>(x, y, dims); });
  });
}

void Expand::cpu(const Problem<NoParams>& p, Candidates& candidates) {
  const auto loop = cpu::strided_loop<1>(p.out[0], {cpu::broadcast_strides(p.in[0], p.out[0].shape)});
  dispatch_dtype(p.out[0].dtype, [&]<class T>() {
    candidates.add("loop", [=] { return std::make_unique<cpu::ExpandKernel<T>>(loop); });
  });
}

}  // namespace plumb
