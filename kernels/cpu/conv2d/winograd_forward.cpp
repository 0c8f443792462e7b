#include "kernels/cpu/cache.h"
#include "kernels/cpu/conv2d/winograd.h"
#include "kernels/cpu/conv2d/winograd_pack.h"
#include "kernels/cpu/conv2d/winograd_tiles.h"
#include "kernels/cpu/nontemporal.h"
#include "kernels/cpu/parallel.h"

namespace plumb::cpu {
namespace winograd {
namespace {

struct Task {
  int64_t n;
  Image in, out;
  int64_t top, left;  // padding of the input; a negative value crops the input
  bool bias, relu;
};

// A core's share of a last-level cache. (What the system says of that may be the sum of several.)
constexpr int64_t kMostCachedWeights = int64_t{32} << 20;

int64_t output_bytes(const Task& task) { return task.n * task.out.h * task.out.w * task.out.c * 4; }

// The plain algorithm: m x m outputs from a window of the input.
template <int M>
struct Straight {
  using Input = InputRule<M>;
  using Output = OutputRule<M>;
  static constexpr int m = M;
  static constexpr bool kAdjoint = false;
  static constexpr char kName[] = "";
};
// Its adjoint: each tile of m x m inputs gives a window of the output; overlapping windows are summed.
template <int M>
struct Adjoint {
  using Input = OutputAdjoint<M>;
  using Output = InputAdjoint<M>;
  static constexpr int m = M;
  static constexpr bool kAdjoint = true;
  static constexpr char kName[] = "_adjoint";
};

// Forward, and backward input either as the forward of dy or as the adjoint. Each thread transforms a block of tiles to
// points, multiplies the points by the packed weights and transforms the products to outputs; a block fits in its
// second-level cache.
template <class Algorithm, class T>
class Convolution final : public Kernel {
 public:
  Convolution(const Task& task, const WeightPack& weights, int threads)
      : Kernel(message("plumb:winograd_nhwc:f{}x{}_3x3{}:{}", m, m, Algorithm::kName, simd::kIsa)),
        task_(task),
        grid_(task.n, kAdjoint ? task.in : task.out, m),
        unit_(kAdjoint ? grid_.rows * grid_.columns : 1),
        weights_(weights),
        outputs_(weights.panels().vectors),
        points_row_(vectors_of(task.in.c) * kLanes),
        stream_(kStreams && !kAdjoint && output_bytes(task) >= nontemporal_bytes) {
    split(threads);
    const int64_t tile_bytes = kPoints * (points_row_ + outputs_ * kLanes) * 4;
    const int64_t fits = l2_bytes() / 2 / tile_bytes / kBlockRows * kBlockRows;
    // With less than two blocks of rows, the weights would be read too often; and where no cache may hold them, with
    // less than balances the traffic of both.
    const auto weight_bytes = static_cast<int64_t>(weights.bytes());
    const int64_t least = weight_bytes > kMostCachedWeights ? weight_bytes / tile_bytes : 0;
    block_ = std::min(std::max({fits, 2 * kBlockRows, least}), ceil_div(grid_.count(), tile_parts_));
    points_distance_ = odd_lines(block_ * points_row_);
    products_distance_ = odd_lines(block_ * outputs_ * kLanes);
    info().workspace_bytes = static_cast<size_t>(tile_parts_ * panel_parts_ * part_floats()) * sizeof(float);
    info().packs.push_back({1, pack_layout(weights)});
  }

  void run(const Launch& l) const override {
    parallel_team(static_cast<int>(tile_parts_ * panel_parts_), [&](int64_t part, int64_t) {
      float* scratch = static_cast<float*>(l.workspace) + part * part_floats();
      const Range units = piece(grid_.count() / unit_, part / panel_parts_, tile_parts_);
      const Range tiles{units.begin * unit_, units.end * unit_};
      const Range panels = piece(weights_.panels().count(), part % panel_parts_, panel_parts_);
      const int64_t blocks = ceil_div(tiles.size(), block_);
      for (int64_t b = 0; b < blocks; ++b) {
        const Range r = piece(tiles.size(), b, blocks);
        run_block(l, scratch, {tiles.begin + r.begin, tiles.begin + r.end}, panels);
      }
      if (stream_) nontemporal_fence();
    });
  }

 private:
  using Input = typename Algorithm::Input;
  using Output = typename Algorithm::Output;
  static constexpr bool kAdjoint = Algorithm::kAdjoint;
  static constexpr bool kStreams = sizeof(T) == sizeof(float);  // a vector of fewer bytes does not fill a line
  static constexpr int m = Algorithm::m, kSize = m + 2, kPoints = kSize * kSize;

  int64_t part_floats() const { return kPoints * (points_distance_ + products_distance_); }

  // Cuts the work into tile_parts_ x panel_parts_, one part per thread, so as to minimise the estimated time. Cutting
  // the tiles costs nothing, but with few tiles per thread, reading the weights dominates. Cutting the panels of output
  // channels repeats the transform of the tiles.
  void split(int threads) {
    constexpr double kStart = 10000;  // the cost of starting threads, in vector instructions as below
    const int64_t panels = weights_.panels().count();
    double least = part_time(grid_.count(), panels);
    for (int64_t p = 1; p <= std::min<int64_t>(threads, panels); ++p) {
      const int64_t units = grid_.count() / unit_, t = std::min<int64_t>(threads / p, units);
      const double time = kStart + part_time(ceil_div(units, t) * unit_, ceil_div(panels, p));
      if (time >= least) continue;
      least = time;
      tile_parts_ = t;
      panel_parts_ = p;
    }
  }
  double part_time(int64_t part_tiles, int64_t part_panels) const {
    constexpr double kWeightTiles = 8, kPerInput = 8, kPerOutput = 6;
    const auto tiles = static_cast<double>(part_tiles), inputs = static_cast<double>(task_.in.c);
    const auto vectors = static_cast<double>(part_panels * kPanelVectors);
    const double products = inputs * vectors * std::max(tiles, kWeightTiles);
    return kPoints * (products + tiles * (kPerInput * inputs / kLanes + kPerOutput * vectors));
  }

  void run_block(const Launch& l, float* scratch, Range tiles, Range panels) const {
    const auto* x = static_cast<const T*>(l.in[0]);
    const auto* u = static_cast<const float*>(l.in[1]);
    float *points = scratch, *products = scratch + kPoints * points_distance_;
    grid_.for_each(tiles, [&](int64_t t, int64_t n, int64_t y0, int64_t x0) {
      const int64_t top = kAdjoint ? 0 : task_.top, left = kAdjoint ? 0 : task_.left;
      transform_window<Input>(x, window(task_.in, n, y0 - top, x0 - left, Input::kIn), task_.in.c, points_distance_,
                              [&](int64_t v) { return points + t * points_row_ + v * kLanes; });
    });
    const Panels from = weights_.panels(), to{tiles.size(), outputs_};
    for (int64_t i = 0; i < kPoints; ++i) {
      for (int64_t p = panels.begin; p < panels.end; ++p) {
        multiply_panel<Left::kByRow>(tiles.size(), task_.in.c, to.width(p), points + i * points_distance_, points_row_,
                                     u + i * weights_.distance() + from.offset(p),
                                     products + i * products_distance_ + to.offset(p), false);
      }
    }
    const int64_t begin = panels.begin * kPanelVectors, end = std::min(panels.end * kPanelVectors, outputs_);
    grid_.for_each(tiles, [&](int64_t t, int64_t n, int64_t y0, int64_t x0) {
      const int64_t top = kAdjoint ? task_.top : 0, left = kAdjoint ? task_.left : 0;
      const Window w = window(task_.out, n, y0 - top, x0 - left, Output::kOut);
      for (int64_t v = begin; v < end; ++v) write_vector(l, w, v, products + to.at(t, v), y0 > 0, x0 > 0);
    });
  }

  // Writes vector v of a tile's output channels. In the adjoint, a tile overlaps the tiles above and beside it by two
  // pixels each; those are written before it, so it adds to their values.
  void write_vector(const Launch& l, const Window& w, int64_t v, const float* products, bool above, bool beside) const {
    const int64_t channels = task_.out.c - v * kLanes;
    T* y = static_cast<T*>(l.out[0]) + v * kLanes;
    const auto write = [&](auto inside, auto whole) {
      Vec bias{};
      if (task_.bias) {
        const T* b = static_cast<const T*>(l.in[2]) + v * kLanes;
        bias = whole ? load(b) : load(b, channels);
      }
      transform<Output>([&](int i, int j) { return load(products + (i * kSize + j) * products_distance_); },
                        [&](int i, int j, Vec value) {
                          if (!inside && !w.has(i, j)) return;
                          T* to = y + w.at(i, j);
                          if constexpr (kAdjoint) {
                            const bool again = (above && i < 2) || (beside && j < 2);
                            if (again) value += whole ? load(to) : load(to, channels);
                          } else {
                            value += bias;
                            if (task_.relu) value = relu(value);
                          }
                          if (!whole) return store(to, value, channels);
                          if constexpr (kStreams) {
                            if (stream_) return stream_alone(to, value);
                          }
                          store(to, value);
                        });
    };
    constexpr std::true_type yes;
    constexpr std::false_type no;
    if (channels < kLanes) {
      write(no, no);
    } else if (w.template is_inside<Output::kOut>()) {
      write(yes, yes);
    } else {
      write(no, yes);
    }
  }

  Task task_;
  TileGrid grid_;
  int64_t unit_;  // one thread's tiles are a multiple of this: in the adjoint, those of an image
  WeightPack weights_;
  int64_t outputs_;     // vectors of output channels
  int64_t points_row_;  // floats per transformed tile, at one point
  bool stream_;         // write the output past the caches
  int64_t tile_parts_ = 1, panel_parts_ = 1;
  int64_t block_;  // tiles per block
  int64_t points_distance_, products_distance_;
};

template <template <int> class Algorithm, class T>
std::unique_ptr<Kernel> make(const Task& task, const WeightPack& weights, int threads) {
  if (weights.m == 2) return std::make_unique<Convolution<Algorithm<2>, T>>(task, weights, threads);
  return std::make_unique<Convolution<Algorithm<4>, T>>(task, weights, threads);
}
template <template <int> class Algorithm>
std::unique_ptr<Kernel> make(DType dtype, const Task& task, const WeightPack& weights, int threads) {
  return dtype == DType::kF32 ? make<Algorithm, float>(task, weights, threads)
                              : make<Algorithm, Bfloat16>(task, weights, threads);
}

}  // namespace
}  // namespace winograd

std::unique_ptr<Kernel> winograd_forward(const Problem<Conv2dParams>& p, int m) {
  using namespace winograd;
  const TensorSpec &x = p.in[0], &w = p.in[1], &y = p.out[0];
  if (!applies(p.params, x, w, y, m)) return nullptr;
  const bool bias = p.in.size() == 3, relu = p.params.activation == Activation::kRelu;
  if (bias && !(p.in[2] == TensorSpec({y.shape[1]}, x.dtype))) return nullptr;
  return make<Straight>(x.dtype, {x.shape[0], Image(x), Image(y), p.params.padding[0], p.params.padding[2], bias, relu},
                        WeightPack(m, Use::kForward, w), p.threads);
}

std::unique_ptr<Kernel> winograd_backward_input(const Problem<Conv2dParams>& p, int m) {
  using namespace winograd;
  const TensorSpec &dy = p.in[0], &w = p.in[1], &dx = p.out[0];
  if (!applies(p.params, dx, w, dy, m)) return nullptr;
  const int64_t n = dy.shape[0], top = p.params.padding[0], left = p.params.padding[2];
  const Image from(dy), to(dx);
  // Without padding, dx is larger than dy; the adjoint cuts dy into tiles, and so has fewer of them. In bf16 what it
  // adds up would be rounded each time.
  const bool is_exact = dx.dtype == DType::kF32;
  if (is_exact && TileGrid(n, from, m).count() < TileGrid(n, to, m).count()) {
    return make<Adjoint, float>({n, from, to, top, left, false, false}, WeightPack(m, Use::kAdjoint, w), p.threads);
  }
  return make<Straight>(dx.dtype, {n, from, to, 2 - top, 2 - left, false, false}, WeightPack(m, Use::kTurned, w),
                        p.threads);
}

}  // namespace plumb::cpu
