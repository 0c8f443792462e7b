#include "kernels/cpu/conv2d/output_lanes.h"

#include "kernels/cpu/conv2d/lane_rows.h"
#include "kernels/cpu/conv2d/output_blocks.h"

namespace plumb::cpu {
namespace {

using simd::kLanes;

// The results of each group in vectors, the last of which begins early if it would end late and there is another; of
// fewer than a vector's lanes, the first lanes are theirs.
struct OutputVectors {
  int64_t groups, outputs, inputs, taps;  // outputs, and inputs that each meets, of a group

  int64_t of_group() const { return simd::vectors_of(outputs); }
  int64_t count() const { return groups * of_group(); }
  int64_t first_output(int64_t vector) const {  // of the group's vectors
    return std::max<int64_t>(0, std::min(vector * kLanes, outputs - kLanes));
  }
  int64_t lanes() const { return std::min(kLanes, outputs); }

  // In floats.
  int64_t of_tap() const { return inputs * kLanes; }
  int64_t of_vector() const { return taps * of_tap(); }
  int64_t floats() const { return count() * of_vector(); }
  bool operator==(const OutputVectors&) const = default;
};

// w (OC, IC / groups, KH, KW) by (group, vector, tap, input, lane). Turned, the results are its inputs.
struct OutputWeights {
  OutputVectors vectors;
  bool is_turned;
  bool operator==(const OutputWeights&) const = default;

  void put_vector(const float* w, float* to, int64_t vector) const {
    const int64_t group = vector / vectors.of_group(), first = vectors.first_output(vector % vectors.of_group());
    const int64_t from_output = is_turned ? 1 : vectors.inputs, from_input = is_turned ? vectors.outputs : 1;
    const float* of_group = w + group * vectors.outputs * vectors.inputs * vectors.taps;
    for (int64_t tap = 0; tap < vectors.taps; ++tap) {
      for (int64_t input = 0; input < vectors.inputs; ++input, to += kLanes) {
        for (int64_t lane = 0; lane < kLanes; ++lane) {
          const int64_t pair = (first + lane) * from_output + input * from_input;
          to[lane] = lane < vectors.lanes() ? of_group[pair * vectors.taps + tap] : 0.0f;
        }
      }
    }
  }
};

class Pass {
 public:
  Pass(const LaneRows& windows, const OutputVectors& vectors, bool relu)
      : w_(windows),
        vectors_(vectors),
        relu_(relu),
        whole_(windows.columns_inside()),
        blocks_(output_blocks()),
        columns_(whole_.size(), blocks_.beside),
        columns_of_pairs_(whole_.size(), blocks_.beside_pairs),
        groups_(vectors.groups, blocks_.vectors),
        full_vectors_(vectors.outputs / kLanes, blocks_.vectors) {}

  int64_t rows() const { return w_.rows(); }

  void run(int64_t row, const LaneRows::Pointers& p) const {
    OutputWindows first{w_.first_of_row(row, p), vectors_.inputs, vectors_.lanes(), 0, 0};
    first.relu = relu_;
    for (int64_t i = 0; i < whole_.begin; ++i) convolve_cut_off(first, i);
    convolve_whole(first);
    for (int64_t i = whole_.end; i < w_.from.out_width; ++i) convolve_cut_off(first, i);
  }

 private:
  // To a window. Where neither pixels have other channels nor weights other taps between, a row of taps is one stretch.
  void meet(OutputWindows& at, int64_t column, Range taps) const {
    w_.meet(at, column, taps);
    if (w_.from.run_columns() == 1 || w_.w_column != vectors_.of_tap()) return;
    at.inputs *= at.columns;
    at.columns = at.columns > 0 ? 1 : 0;
  }
  void go_to(OutputWindows& at, int64_t group, int64_t vector) const {
    const int64_t output = group * vectors_.outputs + vectors_.first_output(vector);
    at.x += group * vectors_.inputs, at.y += output;
    at.w += (group * vectors_.of_group() + vector) * vectors_.of_vector();
    if (at.bias) at.bias += output;
  }
  // All windows of a row that the image's edge does not cut, for one or two vectors after the other: their weights stay
  // in the first-level cache, of which a pair fills all at the most.
  void convolve_whole(const OutputWindows& first) const {
    if (whole_.size() == 0) return;
    OutputWindows begin = first;
    meet(begin, whole_.begin, {0, w_.from.columns});
    for (int64_t group = 0; group < vectors_.groups; ++group) {
      for (int64_t vector = 0; vector < vectors_.of_group();) {
        OutputWindows at = begin;
        go_to(at, group, vector);
        if (vector + 1 < vectors_.of_group()) {
          at.w_vector = vectors_.of_vector();
          at.y_vector = vectors_.first_output(vector + 1) - vectors_.first_output(vector);
          columns_of_pairs_.convolve(at, blocks_.beside_pairs);
          vector += 2;
        } else {
          columns_.convolve(at, blocks_.beside);
          vector += 1;
        }
      }
    }
  }
  // A window that the image's edge may cut off: several groups at once, or several vectors of one, whichever are more.
  void convolve_cut_off(const OutputWindows& first, int64_t column) const {
    OutputWindows begin = first;
    meet(begin, column, w_.taps_inside(column));
    vectors_.groups >= vectors_.of_group() ? convolve_across_groups(begin) : convolve_within_groups(begin);
  }
  void convolve_across_groups(OutputWindows& begin) const {
    begin.x_vector = vectors_.inputs, begin.y_vector = vectors_.outputs;
    begin.w_vector = vectors_.of_group() * vectors_.of_vector();
    for (int64_t vector = 0; vector < vectors_.of_group(); ++vector) {
      OutputWindows at = begin;
      go_to(at, 0, vector);
      groups_.convolve(at, blocks_.vectors);
    }
  }
  void convolve_within_groups(OutputWindows& begin) const {
    begin.x_vector = 0, begin.y_vector = kLanes, begin.w_vector = vectors_.of_vector();
    const int64_t full = vectors_.outputs / kLanes;
    for (int64_t group = 0; group < vectors_.groups; ++group) {
      OutputWindows at = begin, last = begin;
      go_to(at, group, 0);
      full_vectors_.convolve(at, blocks_.vectors);
      if (full == vectors_.of_group()) continue;
      go_to(last, group, full);
      blocks_.vectors[0](last, 1);
    }
  }

  LaneRows w_;
  OutputVectors vectors_;
  bool relu_;
  Range whole_;
  OutputBlocks blocks_;
  LaneCut columns_, columns_of_pairs_, groups_, full_vectors_;
};

}  // namespace

std::unique_ptr<Kernel> conv2d_output_lanes(InnerProduct which, const Problem<Conv2dParams>& p) {
  const LaneConv c{ConvTensors(which, p)};
  if (which == InnerProduct::kBackwardWeight || !c.is_of_f32_in_nhwc()) return nullptr;
  const bool is_forward = which == InnerProduct::kForward;
  const int64_t groups = c.params.groups, outputs = c.w.shape[0] / groups, inputs = c.w.shape[1];
  const OutputVectors vectors{groups, is_forward ? outputs : inputs, is_forward ? inputs : outputs, c.taps()};
  constexpr int64_t kMostWeights = (int64_t{16} << 10) / 4;  // half of a first-level cache
  if (2 * vectors.outputs < kLanes || vectors.of_vector() > kMostWeights) return nullptr;
  auto kernel = kernel_of_lanes("plumb:output_lanes", c, is_forward, vectors.of_tap(), p.threads,
                                [&](const LaneRows& rows, bool relu) { return Pass(rows, vectors, relu); });
  kernel->info().packs.push_back(
      {1, pack_by_vectors(OutputWeights{vectors, !is_forward}, "by_outputs", "plumb:by_outputs")});
  return kernel;
}

}  // namespace plumb::cpu
