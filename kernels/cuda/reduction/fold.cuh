// Lines of a tensor folded to one state each, in an order that does not change. A fold is plain bytes, with
//   State                                 what a line comes to
//   const T* x                            the tensor
//   State start(int64_t y)                before its first term; y is the offset of the line in the result
//   void add(State&, v, int64_t i)        term number i of the line, in the type that arithmetic is done in
//   State merge(State, State)             of two parts of a line, the earlier one first
//   State from_lane(State, int distance)  the state of another lane of the warp
//   void finish(State, int64_t y)
#pragma once

#include "kernels/cuda/element.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/lines.h"

namespace plumb::cuda {

constexpr unsigned kFoldThreads = 256, kFoldWarps = kFoldThreads / kWarp;

template <class Fold>
struct FoldArgs {
  Fold fold;
  Lines l;
  typename Fold::State* parts;  // (part, line), if lines are cut into parts
  int cuts;
};

template <class Fold>
__device__ void end_line(const FoldArgs<Fold>& a, const typename Fold::State& s, int64_t line, int64_t y) {
  if (a.cuts == 1) {
    a.fold.finish(s, y);
  } else {
    put(a.parts + int64_t{blockIdx.y} * a.l.lines.count + line, s);
  }
}

// The terms of a line from `first` on, `step` apart. Several are under way from memory at a time: with one, a thread
// would do nothing but wait.
template <class Fold>
__device__ typename Fold::State fold_terms(const FoldArgs<Fold>& a, int64_t x, int64_t y, int64_t first, int64_t step) {
  constexpr int kUnderWay = 8;
  const auto* const line = a.fold.x + x;
  const Steps& terms = a.l.terms;
  auto s = a.fold.start(y);
  int64_t i = first;
#pragma unroll 1
  for (; i + (kUnderWay - 1) * step < terms.count; i += kUnderWay * step) {
    decltype(load(line)) v[kUnderWay];
#pragma unroll
    for (int j = 0; j < kUnderWay; ++j) v[j] = load(line + terms.of_x(i + j * step));
#pragma unroll
    for (int j = 0; j < kUnderWay; ++j) a.fold.add(s, v[j], i + j * step);
  }
#pragma unroll 1
  for (; i < terms.count; i += step) a.fold.add(s, load(line + terms.of_x(i)), i);
  return s;
}

/// A warp a line.
template <class Fold>
__global__ void __launch_bounds__(kFoldThreads, kFewBlocks) fold_by_warps_kernel(const FoldArgs<Fold> a) {
  const int64_t warp = thread_of_grid() / kWarp, warps = threads_of_grid() / kWarp;
#pragma unroll 1
  for (int64_t line = warp; line < a.l.lines.count; line += warps) {
    int64_t x = 0, y = 0;
    a.l.lines.move(line, x, y);
    const auto s = merge_warp(a.fold, fold_terms(a, x, y, threadIdx.x % kWarp, kWarp));
    if (threadIdx.x % kWarp == 0) a.fold.finish(s, y);
  }
}

template <class Fold>
struct FoldShared {
  typename Fold::State of_warps[kFoldWarps][kWarp];
};

/// A block a line, or a part of one.
template <class Fold>
__global__ void __launch_bounds__(kFoldThreads) fold_by_blocks_kernel(const FoldArgs<Fold> a) {
  auto& shared_states = shared<FoldShared<Fold>>();
  auto* const of_warps = shared_states.of_warps[0];
#pragma unroll 1
  for (int64_t line = blockIdx.x; line < a.l.lines.count; line += gridDim.x) {
    int64_t x = 0, y = 0;
    a.l.lines.move(line, x, y);
    const int64_t step = int64_t{kFoldThreads} * gridDim.y;
    auto s = merge_warp(a.fold, fold_terms(a, x, y, int64_t{blockIdx.y} * kFoldThreads + threadIdx.x, step));
    if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (unsigned w = 1; w < kFoldWarps; ++w) s = a.fold.merge(s, of_warps[w]);
      end_line(a, s, line, y);
    }
    __syncthreads();
  }
}

/// Thirty-two lines a block, a lane each; the warps share the terms of a line, or of a part of one.
template <class Fold>
__global__ void __launch_bounds__(kFoldThreads) fold_across_kernel(const FoldArgs<Fold> a) {
  auto& s = shared<FoldShared<Fold>>();
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
#pragma unroll 1
  for (int64_t first = int64_t{blockIdx.x} * kWarp; first < a.l.lines.count; first += int64_t{gridDim.x} * kWarp) {
    const int64_t line = first + lane;
    const bool is_there = line < a.l.lines.count;
    int64_t x = 0, y = 0;
    if (is_there) {
      a.l.lines.move(line, x, y);
      s.of_warps[warp][lane] =
          fold_terms(a, x, y, int64_t{blockIdx.y} * kFoldWarps + warp, int64_t{kFoldWarps} * gridDim.y);
    }
    __syncthreads();
    if (warp == 0 && is_there) {
      auto total = s.of_warps[0][lane];
      for (unsigned w = 1; w < kFoldWarps; ++w) total = a.fold.merge(total, s.of_warps[w][lane]);
      end_line(a, total, line, y);
    }
    __syncthreads();
  }
}

/// The parts of each line.
template <class Fold>
__global__ void __launch_bounds__(kFoldThreads) fold_parts_kernel(const FoldArgs<Fold> a) {
#pragma unroll 1
  for (int64_t line = thread_of_grid(); line < a.l.lines.count; line += threads_of_grid()) {
    int64_t x = 0, y = 0;
    a.l.lines.move(line, x, y);
    auto s = get(a.parts + line);
    for (int part = 1; part < a.cuts; ++part)
      s = a.fold.merge(s, get(a.parts + int64_t{part} * a.l.lines.count + line));
    a.fold.finish(s, y);
  }
}

/// How lines are folded on a device; decided when the kernel is prepared.
struct FoldPlan {
  enum class Way { kWarps, kBlocks, kAcross } way;
  Grid grid;
  int cuts = 1;
  size_t part_count = 0;

  FoldPlan(const Runtime& r, const Lines& l) {
    constexpr int64_t kLeastOfBlock = 1024, kMostCuts = 64;
    const int64_t lines = l.lines.count, terms = l.terms.count, wanted = int64_t{4} * r.properties().multiprocessors;
    way = l.is_across ? Way::kAcross : terms < kLeastOfBlock ? Way::kWarps : Way::kBlocks;
    const int64_t groups = way == Way::kAcross  ? (lines + kWarp - 1) / kWarp
                           : way == Way::kWarps ? (lines + kFoldWarps - 1) / kFoldWarps
                                                : lines;
    grid = grid_of(r, groups, kFoldThreads);
    if (way == Way::kWarps || groups == 0) return;
    // Few lines with many terms would leave most of the device idle.
    const int64_t least = way == Way::kAcross ? int64_t{kFoldWarps} * 16 : int64_t{kFoldThreads} * 16;
    cuts = static_cast<int>(std::clamp<int64_t>(std::min(wanted / groups, terms / least), 1, kMostCuts));
    grid.blocks.y = static_cast<unsigned>(cuts);
    if (cuts > 1) part_count = static_cast<size_t>(lines) * static_cast<size_t>(cuts);
  }
  int launches() const { return cuts > 1 ? 2 : 1; }
};

template <class Fold>
void launch_fold(const Queue& q, const FoldPlan& plan, const Lines& l, const Fold& fold, void* workspace) {
  const FoldArgs<Fold> args{fold, l, static_cast<typename Fold::State*>(workspace), plan.cuts};
  switch (plan.way) {
    case FoldPlan::Way::kWarps: q.launch<fold_by_warps_kernel<Fold>>(plan.grid, args); break;
    case FoldPlan::Way::kBlocks: q.launch<fold_by_blocks_kernel<Fold>>(plan.grid, args); break;
    case FoldPlan::Way::kAcross: q.launch<fold_across_kernel<Fold>>(plan.grid, args); break;
  }
  if (plan.cuts > 1) q.launch<fold_parts_kernel<Fold>>(grid_over(q.runtime(), l.lines.count), args);
}

/// The kernel that folds the lines of its input; fold.x and fold.y are given by each launch.
template <class Fold>
std::unique_ptr<Kernel> fold_kernel(const char* name, Device device, const Lines& lines, const Fold& fold) {
  const FoldPlan plan(runtime_of(device), lines);
  auto kernel = own(name, device, plan.launches(), [=](const Queue& q, const Launch& l) {
    Fold now = fold;
    now.x = static_cast<decltype(now.x)>(l.in[0]);
    now.y = static_cast<decltype(now.y)>(l.out[0]);
    launch_fold(q, plan, lines, now, l.workspace);
  });
  kernel->info().workspace_bytes = plan.part_count * sizeof(typename Fold::State);
  return kernel;
}

}  // namespace plumb::cuda
