// How the lines of a tensor are folded on a device.
#pragma once

#include "kernels/cuda/reduction/fold.cuh"

namespace plumb::cuda {

/// Whether the steps of dimension `from` and beyond are whole pieces of `each` elements.
inline bool goes_by_pieces(const Steps& s, int each, int from) {
  for (int d = from; d < s.rank; ++d) {
    if (s.x[d] % each != 0) return false;
  }
  return true;
}

/// Decided when the kernel is prepared.
template <class Fold>
class FoldPlan {
 public:
  FoldPlan(const Runtime& r, const Lines& l) : lines_(l.lines) {
    const int64_t multiprocessors = r.properties().multiprocessors;
    l.is_across ? plan_across(l, multiprocessors) : plan_near(l, multiprocessors);
    grid_ = grid_of(r, groups_, kFoldThreads);
    grid_.blocks.y = static_cast<unsigned>(cuts_);
  }
  int launches() const { return cuts_ > 1 ? 2 : 1; }
  size_t workspace_bytes() const {
    return cuts_ == 1 ? 0
                      : static_cast<size_t>(lines_.count) * static_cast<size_t>(cuts_) * sizeof(typename Fold::State);
  }
  void launch(const Queue& q, const Fold& fold, void* workspace) const {
    const FoldArgs<Fold> args{fold,  lines_, terms_, static_cast<typename Fold::State*>(workspace),
                              cuts_, width_, slots_};
    each_ == 1      ? launch_pieces<1>(q, args)
    : each_ == kFew ? launch_pieces<kFew>(q, args)
                    : launch_pieces<kMostEach>(q, args);
    if (cuts_ == 1) return;
    if (lines_.count <= int64_t{4} * q.runtime().properties().multiprocessors) {
      q.launch<fold_parts_by_blocks_kernel<Fold>>(grid_of(q.runtime(), lines_.count, kFoldThreads), args);
    } else {
      q.launch<fold_parts_by_warps_kernel<Fold>>(grid_over(q.runtime(), lines_.count * kWarp), args);
    }
  }

 private:
  enum class Way { kWarps, kBlocks, kAcross };
  using Element = typename Fold::Element;
  // Bytes by four: more would take too many registers, and are no activations.
  static constexpr int kMostEach = sizeof(Element) == 1 ? 4 : Vector<Element>::kSize, kFew = kFewEach<Element>;
  static constexpr int64_t kUnderWay = 4;  // pieces that a thread should have
  static constexpr int64_t kBlocksOfMultiprocessor = 8;

  template <int kEach>
  void launch_pieces(const Queue& q, const FoldArgs<Fold>& args) const {
    if (way_ == Way::kWarps) return q.launch<fold_by_warps_kernel<Fold, kEach>>(grid_, args);
    if (way_ == Way::kBlocks) return q.launch<fold_by_blocks_kernel<Fold, kEach>>(grid_, args);
    if constexpr (Fold::kIsAcross) q.launch<fold_across_kernel<Fold, kEach>>(grid_, args);
  }
  // As many elements as a piece can have, if pieces of them do.
  template <class Goes>
  static int most_that(const Goes& goes) {
    return goes(kMostEach) ? kMostEach : goes(kFew) ? kFew : 1;
  }
  // Few lines with many terms would leave most of the device idle. Parts are merged by a launch more: a block or two of
  // each multiprocessor do better without.
  void cut(int64_t multiprocessors, int64_t turns) {
    constexpr int64_t kMostCuts = 65535;
    if (groups_ == 0 || 2 * groups_ >= 3 * multiprocessors) return;
    const int64_t wanted = kBlocksOfMultiprocessor * multiprocessors / groups_;
    cuts_ = static_cast<int>(std::clamp<int64_t>(std::min(wanted, turns), 1, kMostCuts));
  }

  // Lines of neighbours. A warp has several that are short.
  void plan_near(const Lines& l, int64_t multiprocessors) {
    constexpr int64_t kMostOfLanes = kWarp * kUnderWay, kMostOfWarps = 1024;
    const bool has_runs = l.terms.rank > 1;
    const int64_t inner = l.terms.rank > 0 ? l.terms.extent[0].by : 1;
    each_ = most_that([&](int each) {
      return inner >= each && l.terms.x[0] == 1 && goes_by_pieces(l.lines, each, 0) &&
             goes_by_pieces(l.terms, each, 1) && (!has_runs || inner % each == 0);
    });
    const int64_t lines = l.lines.count, pieces = l.terms.count / each_;
    const bool has_many = lines >= 16 * multiprocessors;
    way_ = pieces <= kMostOfLanes || (pieces < kMostOfWarps && has_many) ? Way::kWarps : Way::kBlocks;
    if (way_ == Way::kWarps) {
      while (width_ < kWarp && width_ * kUnderWay < pieces) width_ *= 2;
      const int64_t of_block = kFoldThreads / width_;
      groups_ = (lines + of_block - 1) / of_block;
      terms_ = Terms(l.terms, each_, width_);
    } else {
      groups_ = lines;
      cut(multiprocessors, pieces / (kUnderWay * kFoldThreads));
      terms_ = Terms(l.terms, each_, int64_t{kFoldThreads} * cuts_);
    }
  }

  // Lines side by side. As few threads share one as keep the device busy, for their states must be merged; but many
  // rather than parts.
  void plan_across(const Lines& l, int64_t multiprocessors) {
    constexpr unsigned kLeastWidth = 8;  // 128 bytes side by side
    way_ = Way::kAcross;
    each_ = most_that([&](int each) {
      return l.lines.x[0] == 1 && l.lines.extent[0].by % each == 0 && goes_by_pieces(l.lines, each, 1) &&
             goes_by_pieces(l.terms, each, 0);
    });
    const int64_t side_by_side = l.lines.count / each_;
    width_ = static_cast<unsigned>(std::clamp<int64_t>(side_by_side, 1, kWarp));
    const auto needs_parts = [&](unsigned width) { return 2 * side_by_side < 3 * multiprocessors * width; };
    if (!needs_parts(kLeastWidth)) {
      while (needs_parts(width_) && width_ >= 2 * kLeastWidth) width_ /= 2;
    }
    while (2 * width_ <= kFoldThreads && side_by_side >= 6 * multiprocessors * width_) width_ *= 2;
    slots_ = kFoldThreads / width_;
    groups_ = (side_by_side + width_ - 1) / width_;
    cut(multiprocessors, l.terms.count / (kUnderWay * slots_));
    terms_ = Terms(l.terms, 1, int64_t{slots_} * cuts_);
  }

  Steps lines_;
  Terms terms_;
  Way way_ = Way::kWarps;
  int each_ = 1, cuts_ = 1;
  unsigned width_ = 1, slots_ = 1;
  int64_t groups_ = 0;  // what a block has at a time
  Grid grid_;
};

/// The kernel that folds the lines of its input; fold.x and fold.y are given by each launch.
template <class Fold>
std::unique_ptr<Kernel> fold_kernel(const char* name, Device device, const Lines& lines, const Fold& fold) {
  const FoldPlan<Fold> plan(runtime_of(device), lines);
  auto kernel = own(name, device, plan.launches(), [=](const Queue& q, const Launch& l) {
    Fold now = fold;
    now.x = static_cast<decltype(now.x)>(l.in[0]);
    now.y = static_cast<decltype(now.y)>(l.out[0]);
    plan.launch(q, now, l.workspace);
  });
  kernel->info().workspace_bytes = plan.workspace_bytes();
  return kernel;
}

}  // namespace plumb::cuda
