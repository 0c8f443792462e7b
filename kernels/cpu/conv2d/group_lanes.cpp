#include "kernels/cpu/conv2d/group_lanes.h"

#include <bit>
#include <vector>

#include "kernels/cpu/conv2d/group_lanes_weight.h"
#include "kernels/cpu/conv2d/lane_rows.h"
#include "kernels/cpu/conv2d/lanes.h"

namespace plumb::cpu {
namespace {

// w (OC, OC / groups, KH, KW) by lanes: a lane is an input, or, turned, an output.
struct LaneWeights {
  LaneVectors vectors;
  bool is_turned;
  bool operator==(const LaneWeights&) const = default;

  void put_vector(const float* w, float* to, int64_t vector) const {
    for (int64_t tap = 0; tap < vectors.taps; ++tap, to += vectors.of_tap()) {
      vectors.each_pair(vector, [&](int64_t place, int64_t channel, int64_t other) {
        const int64_t output = is_turned ? channel : other, input = is_turned ? other : channel;
        to[place] = w[(output * vectors.of_group + input % vectors.of_group) * vectors.taps + tap];
      });
    }
  }
};

// A convolution by such windows, row by row.
class Pass {
 public:
  Pass(const LaneRows& windows, const LaneVectors& lanes, bool relu)
      : w_(windows),
        lanes_(lanes),
        relu_(relu),
        whole_(windows.columns_inside()),
        blocks_(lane_blocks(lanes.of_group)),
        columns_(whole_.size(), blocks_.beside),
        vectors_(lanes.full(), blocks_.vectors) {}

  int64_t rows() const { return w_.rows(); }

  void run(int64_t row, const LaneRows::Pointers& p) const {
    LaneWindows first = w_.first_of_row(row, p);
    first.w_vector = lanes_.of_vector();
    first.relu = relu_;
    for (int64_t i = 0; i < whole_.begin; ++i) convolve_cut_off(first, i);
    lanes_.floats() <= kFewWeights ? convolve_across(first) : convolve_beside(first);
    for (int64_t i = whole_.end; i < w_.from.out_width; ++i) convolve_cut_off(first, i);
  }

 private:
  static constexpr int64_t kFewWeights = (int64_t{16} << 10) / 4;  // half of a first-level cache

  // Whether the channels leave a last vector, which begins early.
  bool has_last_vector() const { return lanes_.count() > lanes_.full(); }
  void go_to(LaneWindows& at, int64_t vector) const {
    const int64_t channel = lanes_.first_channel(vector);
    at.x += channel, at.y += channel, at.w += vector * lanes_.of_vector();
    if (at.bias) at.bias += channel;
  }
  // Whole windows, a few of them for all vectors: memory is gone through in its order.
  void convolve_across(const LaneWindows& first) const {
    for (int64_t column = whole_.begin; column < whole_.end; column += columns_.size) {
      const auto block = static_cast<size_t>(std::min(columns_.size, whole_.end - column) - 1);
      LaneWindows at = first;
      w_.meet(at, column, {0, w_.from.columns});
      LaneWindows last = at;
      blocks_.across[block](at, lanes_.full());
      if (!has_last_vector()) continue;
      go_to(last, lanes_.full());
      blocks_.across[block](last, 1);
    }
  }
  // All whole windows for one vector after the other: each vector's weights stay in the first-level cache.
  void convolve_beside(const LaneWindows& first) const {
    if (whole_.size() == 0) return;
    for (int64_t vector = 0; vector < lanes_.count(); ++vector) {
      LaneWindows at = first;
      w_.meet(at, whole_.begin, {0, w_.from.columns});
      go_to(at, vector);
      columns_.convolve(at, blocks_.beside);
    }
  }
  // A window that the image's edge may cut off.
  void convolve_cut_off(LaneWindows at, int64_t column) const {
    w_.meet(at, column, w_.taps_inside(column));
    LaneWindows last = at;
    vectors_.convolve(at, blocks_.vectors);
    if (!has_last_vector()) return;
    go_to(last, lanes_.full());
    blocks_.vectors[0](last, 1);
  }

  LaneRows w_;
  LaneVectors lanes_;
  bool relu_;
  Range whole_;
  LaneBlocks blocks_;
  LaneCut columns_, vectors_;
};

struct Conv : LaneConv {
  bool applies() const {
    const bool fills_lanes = std::has_single_bit(static_cast<uint64_t>(w.shape[1])) && w.shape[1] <= simd::kLanes;
    return is_of_f32_in_nhwc() && x.shape[1] == y.shape[1] && fills_lanes && x.shape[1] >= simd::kLanes;
  }
  LaneVectors lanes() const { return {x.shape[1], w.shape[1], taps()}; }
};

}  // namespace

std::unique_ptr<Kernel> conv2d_group_lanes(InnerProduct which, const Problem<Conv2dParams>& p) {
  const Conv c{LaneConv(ConvTensors(which, p))};
  if (!c.applies()) return nullptr;
  const LaneVectors lanes = c.lanes();
  if (which == InnerProduct::kBackwardWeight) {
    return group_lanes_backward_weight(lanes, c.windows(), c.x.shape[0], c.team(p.threads));
  }
  const bool is_forward = which == InnerProduct::kForward;
  auto kernel = kernel_of_lanes("plumb:group_lanes", c, is_forward, lanes.of_tap(), p.threads,
                                [&](const LaneRows& rows, bool relu) { return Pass(rows, lanes, relu); });
  kernel->info().packs.push_back({1, pack_by_vectors(LaneWeights{lanes, !is_forward}, "by_lanes", "plumb:by_lanes")});
  return kernel;
}

}  // namespace plumb::cpu
