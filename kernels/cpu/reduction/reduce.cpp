#include "kernels/reduce.h"

#include <limits>

#include "kernels/cpu/element.h"
#include "kernels/cpu/onednn/primitives.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduction/reduce_plan.h"
#include "kernels/cpu/reduction/reduce_sweep.h"
#include "kernels/cpu/reduction/runs.h"

namespace plumb::cpu {
namespace {

template <class T>
struct Sum {
  using Total = double;
  static constexpr Compute<T> kStart = 0;
  static constexpr int64_t kShortest = 32;  // the longest run that is added in its order
  static constexpr bool kFolds = false;     // whether neither the order matters nor an element that counts twice
  static Compute<T> combine(Compute<T> a, Compute<T> v) { return a + v; }
  static Total total(Total a, Total v) { return a + v; }
};
template <class T>
struct Max {
  using Total = Compute<T>;
  static constexpr Compute<T> kStart = -std::numeric_limits<Compute<T>>::infinity();
  static constexpr int64_t kShortest = 256;
  static constexpr bool kFolds = true;
  static Compute<T> combine(Compute<T> a, Compute<T> v) {
    const Compute<T> larger = v > a ? v : a;  // a, where that is NaN
    return v != v ? v : larger;
  }
  static Total total(Total a, Total v) { return combine(a, v); }
};

// For a reduced innermost dimension: each output is gathered from runs of x. Work is cut into pieces of a fixed size,
// so that the result does not depend on the number of threads.
template <class T, class Op>
class RunsKernel final : public Kernel {
 public:
  RunsKernel(ReducePlan plan, double divisor) : Kernel("plumb:reduce:runs"), plan_(std::move(plan)), divisor_(divisor) {
    run_ = plan_.reduced[0].extent;
    runs_ = plan_.terms / std::max<int64_t>(run_, 1);
    if (run_ >= kPiece) {
      cuts_ = ceil_div(run_, kPiece);
      runs_in_piece_ = 1;
    } else {
      runs_in_piece_ = std::max<int64_t>(1, kPiece / std::max<int64_t>(run_, 1));
    }
    pieces_ = ceil_div(runs_, runs_in_piece_) * cuts_;
    info().workspace_bytes = pieces_ == 1 ? 0 : static_cast<size_t>(plan_.outputs * pieces_) * sizeof(Total);
  }
  void run(const Launch& l) const override {
    const auto* x = static_cast<const T*>(l.in[0]);
    auto* y = static_cast<T*>(l.out[0]);
    auto* partial = static_cast<Total*>(l.workspace);
    const int64_t grain =
        std::max<int64_t>(1, kPiece / std::max<int64_t>(plan_.terms / std::max<int64_t>(pieces_, 1), 1));
    const auto write = [&](int64_t o, Total t) {
      store(y + offset_of(plan_.kept, o, &Axis::y_stride), static_cast<Compute<T>>(t / static_cast<Total>(divisor_)));
    };
    const bool is_short = runs_ == 1 && run_ <= Op::kShortest && plan_.kept.size() == 1;
    parallel_for(plan_.outputs * pieces_, grain, is_short ? kSide : 1, [&](int64_t begin, int64_t end) {
      if (is_short) return short_runs(x, y, begin, end);
      for (int64_t i = begin; i < end; ++i) {
        if (pieces_ == 1) {
          write(i, piece(x + offset_of(plan_.kept, i, &Axis::x_stride), 0));
        } else {
          partial[i] = piece(x + offset_of(plan_.kept, i / pieces_, &Axis::x_stride), i % pieces_);
        }
      }
    });
    if (pieces_ == 1) return;
    for (int64_t o = 0; o < plan_.outputs; ++o) {
      Total t = Op::kStart;
      for (int64_t p = 0; p < pieces_; ++p) t = Op::total(t, partial[o * pieces_ + p]);
      write(o, t);
    }
  }

 private:
  using Total = typename Op::Total;
  static constexpr int64_t kPiece = 32768;

  // The outputs [begin, end), each of one short run: kSide together, and what is left at the end of all one by one.
  void short_runs(const T* x, T* y, int64_t begin, int64_t end) const {
    const int64_t step = plan_.kept[0].x_stride, y_step = plan_.kept[0].y_stride;
    const auto divisor = static_cast<Total>(divisor_);
    const auto finished = [divisor](Compute<T> t) { return static_cast<Compute<T>>(static_cast<Total>(t) / divisor); };
    int64_t i = begin;
    for (; i + kSide <= end; i += kSide) {
      Compute<T> totals[kSide];
      if (Op::kFolds && run_ > kSide) {
        totals_of_folded_runs<T, Op>(x + i * step, step, run_, totals);
      } else {
        totals_of_runs<T, Op>(x + i * step, step, run_, totals);
      }
      if (divisor != 1) {
        for (int64_t s = 0; s < kSide; ++s) totals[s] = finished(totals[s]);
      }
      T* const to = y + i * y_step;
      if (y_step == 1) {
        for (int64_t s = 0; s < kSide; ++s) store(to + s, totals[s]);
      } else {
        for (int64_t s = 0; s < kSide; ++s) store(to + s * y_step, totals[s]);
      }
    }
    for (; i < end; ++i) store(y + i * y_step, finished(total_in_order<T, Op>(x + i * step, run_)));
  }

  Total piece(const T* x, int64_t p) const {
    if (runs_ == 1 && cuts_ == 1) return total_of_run<T, Op>(x, run_);
    const int64_t first = p / cuts_ * runs_in_piece_, last = std::min(runs_, first + runs_in_piece_);
    const int64_t begin = cuts_ == 1 ? 0 : p % cuts_ * kPiece, end = cuts_ == 1 ? run_ : std::min(run_, begin + kPiece);
    const std::span<const Axis> outer(plan_.reduced.data() + 1, plan_.reduced.size() - 1);
    Total t = Op::kStart;
    for (int64_t r = first; r < last; ++r)
      t = Op::total(t, total_of_run<T, Op>(x + offset_of(outer, r, &Axis::x_stride) + begin, end - begin));
    return t;
  }

  ReducePlan plan_;
  double divisor_;
  int64_t run_ = 1, runs_ = 1, cuts_ = 1, runs_in_piece_ = 1, pieces_ = 1;
};

// For an innermost dimension that is kept: rows of x are added up, a tile of columns at a time. If there are many rows,
// pieces of them are first added into rows of their own. No result depends on the number of threads.
template <class T, class Op>
class RowsKernel final : public Kernel {
 public:
  RowsKernel(ReducePlan plan, double divisor) : Kernel("plumb:reduce:rows"), plan_(std::move(plan)), divisor_(divisor) {
    width_ = plan_.kept[0].extent;
    tile_ = std::min(width_, kTile);
    tiles_ = ceil_div(width_, kTile);
    units_ = plan_.outputs / std::max<int64_t>(width_, 1) * tiles_;
    const int64_t rows_in_piece = std::max<int64_t>(16, 65536 / std::max<int64_t>(tile_, 1));
    pieces_ = std::clamp<int64_t>(ceil_div(plan_.terms, rows_in_piece), 1, 64);
    if (pieces_ > 1) info().workspace_bytes = static_cast<size_t>(units_ * pieces_ * tile_) * sizeof(Total);
  }
  void run(const Launch& l) const override {
    const auto* x = static_cast<const T*>(l.in[0]);
    auto* y = static_cast<T*>(l.out[0]);
    auto* partial = static_cast<Total*>(l.workspace);
    const int64_t work = std::max<int64_t>(plan_.terms * tile_ / pieces_, 1);
    parallel_for(units_ * pieces_, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Total sums[kTile];
        Total* total = pieces_ == 1 ? sums : partial + i * tile_;
        add_rows(x, i / pieces_, piece(plan_.terms, i % pieces_, pieces_), total);
        if (pieces_ == 1) put(y, i, total);
      }
    });
    if (pieces_ == 1) return;
    const int64_t pieces_work = std::max<int64_t>(tile_ * pieces_, 1);
    parallel_for(units_, std::max<int64_t>(1, kGrain / pieces_work), [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        Total* first = partial + unit * pieces_ * tile_;
        for (int64_t p = 1; p < pieces_; ++p) {
          const Total* row = first + p * tile_;
          for (int64_t j = 0; j < columns_of(unit); ++j) first[j] = Op::total(first[j], row[j]);
        }
        put(y, unit, first);
      }
    });
  }

 private:
  using C = Compute<T>;
  using Total = typename Op::Total;
  static constexpr int64_t kTile = 2048, kGrain = 16384;

  int64_t columns_of(int64_t unit) const { return std::min(tile_, width_ - unit % tiles_ * tile_); }
  std::span<const Axis> outer() const { return std::span(plan_.kept).subspan(1); }
  // Few rows at a time, so that long sums do not lose their last digits.
  void add_rows(const T* x, int64_t unit, Range rows, Total* total) const {
    constexpr int64_t kFew = 64;
    const int64_t n = columns_of(unit);
    const T* from = x + offset_of(outer(), unit / tiles_, &Axis::x_stride) + unit % tiles_ * tile_;
    for (int64_t j = 0; j < n; ++j) total[j] = Op::kStart;
    while (rows.begin < rows.end) {
      const int64_t stop = std::min(rows.end, rows.begin + kFew);
      C few[kTile];
      for (int64_t j = 0; j < n; ++j) few[j] = Op::kStart;
      const auto next = [&] { return from + offset_of(plan_.reduced, rows.begin++, &Axis::x_stride); };
      while (rows.begin + 4 <= stop) {  // several at a time, so that `few` is read and written less often
        const T *const a = next(), *const b = next(), *const c = next(), *const d = next();
        for (int64_t j = 0; j < n; ++j) {
          const C ab = Op::combine(load(a + j), load(b + j)), cd = Op::combine(load(c + j), load(d + j));
          few[j] = Op::combine(few[j], Op::combine(ab, cd));
        }
      }
      while (rows.begin < stop) {
        const T* const row = next();
        for (int64_t j = 0; j < n; ++j) few[j] = Op::combine(few[j], load(row + j));
      }
      for (int64_t j = 0; j < n; ++j) total[j] = Op::total(total[j], static_cast<Total>(few[j]));
    }
  }
  void put(T* y, int64_t unit, const Total* total) const {
    const int64_t step = plan_.kept[0].y_stride;
    T* to = y + offset_of(outer(), unit / tiles_, &Axis::y_stride) + unit % tiles_ * tile_ * step;
    for (int64_t j = 0; j < columns_of(unit); ++j)
      store(to + j * step, static_cast<C>(total[j] / static_cast<Total>(divisor_)));
  }

  ReducePlan plan_;
  double divisor_;
  int64_t width_, tile_, tiles_, units_, pieces_;
};

template <class T, class Op>
std::unique_ptr<Kernel> make_reduce(const ReducePlan& plan, double divisor) {
  if (SweepKernel<T, Op>::suits(plan)) return std::make_unique<SweepKernel<T, Op>>(plan, divisor);
  if (plan.inner_reduced) return std::make_unique<RunsKernel<T, Op>>(plan, divisor);
  return std::make_unique<RowsKernel<T, Op>>(plan, divisor);
}

// Whether to offer oneDNN's sums. They stay in 16 lanes of f32 to the end, so long sums lose their last digits. Its
// maximum is not used, since it ignores NaN.
bool dnnl_has_sum(const ReducePlan& plan, DType dtype) {
  return (dtype == DType::kF32 || dtype == DType::kBf16) && plan.outputs > 0 && plan.terms > 1 &&
         plan.terms <= 16 * kShortSum;
}
std::unique_ptr<Kernel> dnnl_sum(const StridedLoop<2>& loop, DType dtype, bool is_mean) {
  const MemoryDesc x = dnnl_desc(loop, 0, dtype), y = dnnl_desc(loop, 1, dtype);
  const auto algorithm = is_mean ? dnnl::algorithm::reduction_mean : dnnl::algorithm::reduction_sum;
  return single_primitive<dnnl::reduction>(primitive_desc<dnnl::reduction>(dnnl_attr(), algorithm, x, y, 0.0f, 0.0f),
                                           {{DNNL_ARG_SRC, x, DnnlArg::kIn, 0}, {DNNL_ARG_DST, y, DnnlArg::kOut, 0}});
}

}  // namespace
}  // namespace plumb::cpu

namespace plumb {

void Reduce::cpu(const Problem<Params>& p, Candidates& candidates) {
  const TensorSpec &x = p.in[0], &y = p.out[0];
  const cpu::ReducePlan plan(x, y, p.params.dims);
  const bool is_mean = p.params.what == Reduction::kMean, is_max = p.params.what == Reduction::kMax;
  const double divisor = is_mean ? static_cast<double>(plan.terms) : 1.0;
  cpu::Offer vendor;
  if (!is_max && cpu::dnnl_has_sum(plan, x.dtype)) {
    // It takes 1.2 to 50 times as long as ours (docs/measured.md).
    vendor = cpu::dnnl_offer(
        [=, loop = cpu::reduce_loop(x, y, p.params.dims)] { return cpu::dnnl_sum(loop, x.dtype, is_mean); });
  }
  cpu::dispatch_compute(x.dtype, [&]<class T>() {
    const auto make = [=] {
      return is_max ? cpu::make_reduce<T, cpu::Max<T>>(plan, 1.0) : cpu::make_reduce<T, cpu::Sum<T>>(plan, divisor);
    };
    cpu::offer_in_order(candidates, {{"loop", Provider::kPlumbline, make}, vendor});
  });
}

}  // namespace plumb
