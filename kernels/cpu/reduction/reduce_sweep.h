// Reductions that read memory in order, each piece into outputs of its own.
#pragma once

#include <algorithm>

#include "dispatch/kernel.h"
#include "kernels/cpu/element.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduction/reduce_plan.h"
#include "kernels/cpu/reduction/simd_reduce.h"

namespace plumb::cpu {

// For an innermost dimension that is reduced in short runs, with the outermost reduced as well: sums over all but the
// channels of NCHW. Computing one output after another would jump through memory, so pieces of x are read in memory
// order, each into outputs of its own.
template <class T, class Op>
class SweepKernel final : public Kernel {
 public:
  SweepKernel(ReducePlan plan, double divisor)
      : Kernel("plumb:reduce:sweep"), plan_(std::move(plan)), divisor_(divisor) {
    run_ = plan_.reduced[0].extent;
    rounds_ = plan_.terms / run_;
    pieces_ = std::clamp<int64_t>(plan_.terms * plan_.outputs / kPiece, 1, std::min(rounds_, kMostPieces));
    info().workspace_bytes = static_cast<size_t>(pieces_ * plan_.outputs) * sizeof(Total);
  }
  static bool suits(const ReducePlan& plan) {
    return plan.terms > 0 && plan.inner_reduced && plan.reduced.size() == 2 && plan.kept.size() == 1 &&
           plan.kept[0].x_stride < plan.reduced[1].x_stride && plan.reduced[0].extent <= kLongestRun;
  }
  void run(const Launch& l) const override {
    const auto* x = static_cast<const T*>(l.in[0]);
    auto* y = static_cast<T*>(l.out[0]);
    auto* partial = static_cast<Total*>(l.workspace);
    parallel_for(pieces_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) sweep(x, cpu::piece(rounds_, p, pieces_), partial + p * plan_.outputs);
    });
    for (int64_t o = 0; o < plan_.outputs; ++o) {
      Total t = partial[o];
      for (int64_t p = 1; p < pieces_; ++p) t = Op::total(t, partial[p * plan_.outputs + o]);
      store(y + o * plan_.kept[0].y_stride, static_cast<Compute<T>>(t / static_cast<Total>(divisor_)));
    }
  }

 private:
  using C = Compute<T>;
  using Total = typename Op::Total;
  static constexpr int64_t kPiece = 65536, kMostPieces = 64, kLongestRun = 4096, kWidth = 32;

  // A few outputs at a time. Their lanes are added up often enough that no digits are lost.
  void sweep(const T* x, Range rounds, Total* totals) const {
    constexpr int64_t kTile = 32;
    const int64_t few = std::max<int64_t>(1, kShortSum / run_);
    std::fill_n(totals, plan_.outputs, static_cast<Total>(Op::kStart));
    for (int64_t first = rounds.begin; first < rounds.end; first += few) {
      const int64_t last = std::min(rounds.end, first + few);
      for (int64_t tile = 0; tile < plan_.outputs; tile += kTile) {
        const int64_t n = std::min(kTile, plan_.outputs - tile);
        C lanes[kTile][kWidth];
        std::fill_n(lanes[0], n * kWidth, Op::kStart);
        for (int64_t r = first; r < last; ++r) {
          const T* from = x + r * plan_.reduced[1].x_stride + tile * plan_.kept[0].x_stride;
          for (int64_t o = 0; o < n; ++o, from += plan_.kept[0].x_stride) add_run(lanes[o], from);
        }
        for (int64_t o = 0; o < n; ++o) totals[tile + o] = Op::total(totals[tile + o], together(lanes[o]));
      }
    }
  }
  void add_run(C* lanes, const T* x) const {
    C sums[kWidth];
    std::copy_n(lanes, kWidth, sums);
    int64_t i = 0;
    for (; i + kWidth <= run_; i += kWidth) {
      for (int64_t k = 0; k < kWidth; ++k) sums[k] = Op::combine(sums[k], load(x + i + k));
    }
    for (int64_t k = 0; k < run_ - i; ++k) sums[k] = Op::combine(sums[k], load(x + i + k));
    std::copy_n(sums, kWidth, lanes);
  }
  static Total together(C* lanes) {
    for (int64_t width = kWidth / 2; width > 0; width /= 2) {
      for (int64_t k = 0; k < width; ++k) lanes[k] = Op::combine(lanes[k], lanes[k + width]);
    }
    return static_cast<Total>(lanes[0]);
  }

  ReducePlan plan_;
  double divisor_;
  int64_t run_, rounds_, pieces_;
};

}  // namespace plumb::cpu
