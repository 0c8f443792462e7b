#include "kernels/cpu/parallel.h"
#include "kernels/cpu/winograd.h"
#include "kernels/cpu/winograd_multiply.h"
#include "kernels/cpu/winograd_tiles.h"

namespace plumb::cpu {
namespace winograd {
namespace {

constexpr int64_t kTaps = 9;
constexpr int64_t kChunk = 16;  // input channels whose taps are gathered before they are written

struct Shapes {
  int64_t n;
  Image x, dy;
  int64_t top, left;  // padding of x
};

// For each point a product over the tiles, summed into (IC x OC): dy's tiles and their windows of x are transformed block by
// block, and the sums are transformed to taps at the end.
template <int m>
class BackwardWeight final : public Kernel {
 public:
  static constexpr int kSize = m + 2, kPoints = kSize * kSize;

  BackwardWeight(const Shapes& s, int threads)
      : Kernel(message("plumb:winograd_nhwc:f3x3_{}x{}:{}", m, m, kIsa)),
        s_(s),
        grid_(s.n, s.dy, m),
        threads_(threads),
        sums_{s.x.c, vectors_of(s.dy.c)} {
    plan();
    x_row_ = vectors_of(s.x.c) * kLanes;
    x_distance_ = odd_lines(block_ * x_row_);
    dy_distance_ = odd_lines(block_ * sums_.vectors * kLanes);
    sum_distance_ = odd_lines(sums_.floats());
    info().workspace_bytes = static_cast<size_t>(groups_ * group_floats()) * sizeof(float);
  }

  void run(const Launch& l) const override {
    if (groups_ > 1) {
      parallel_team(static_cast<int>(groups_),
                    [&](int64_t g, int64_t) { accumulate(l, g, piece(grid_.count(), g, groups_), 1); });
    } else {
      accumulate(l, 0, {0, grid_.count()}, threads_);
    }
    const int64_t chunks = (sums_.rows + kChunk - 1) / kChunk, units = sums_.count() * chunks;
    parallel_for(units, kGrainBytes / (kChunk * kPanel * 4 * kPoints * groups_), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) write_taps(l, i / chunks, i % chunks * kChunk);
    });
  }

 private:
  int64_t group_floats() const { return kPoints * (x_distance_ + dy_distance_ + sum_distance_); }
  float* scratch(const Launch& l, int64_t group) const { return static_cast<float*>(l.workspace) + group * group_floats(); }

  void plan() {
    groups_ = threads_;
    if (const char* e = getenv("TOG")) groups_ = atoi(e) ? 1 : threads_;
    block_ = 64;
    if (const char* e = getenv("WB")) block_ = atoi(e);
    groups_ = std::min(groups_, grid_.count());
    block_ = std::min(block_, (grid_.count() + groups_ - 1) / groups_);
  }

  void accumulate(const Launch& l, int64_t group, Range tiles, int team) const {
    float *x = scratch(l, group), *dy = x + kPoints * x_distance_, *sums = dy + kPoints * dy_distance_;
    const int64_t blocks = (tiles.size() + block_ - 1) / block_;
    for (int64_t b = 0; b < blocks; ++b) {
      const Range r = piece(tiles.size(), b, blocks);
      parallel_team(team, [&](int64_t t, int64_t count) {
        const Range part = piece(r.size(), t, count);
        transform_tiles(l, x, dy, tiles.begin + r.begin, r.size(), part);
      });
      parallel_team(team, [&](int64_t t, int64_t count) {
        const Panels columns{r.size(), sums_.vectors};
        const Range units = piece(kPoints * sums_.count(), t, count);
        for (int64_t u = units.begin; u < units.end; ++u) {
          const int64_t point = u / sums_.count(), p = u % sums_.count();
          multiply_panel<Left::kByColumn>(sums_.rows, columns.rows, sums_.width(p), x + point * x_distance_, x_row_,
                                          dy + point * dy_distance_ + columns.offset(p),
                                          sums + point * sum_distance_ + sums_.offset(p), b > 0);
        }
      });
    }
  }

  void transform_tiles(const Launch& l, float* x, float* dy, int64_t first, int64_t count, Range part) const {
    const auto *from_dy = static_cast<const float*>(l.in[0]), *from_x = static_cast<const float*>(l.in[1]);
    const Panels columns{count, sums_.vectors};
    grid_.for_each({first + part.begin, first + part.end}, [&](int64_t i, int64_t n, int64_t y0, int64_t x0) {
      const int64_t t = part.begin + i;
      transform_window<InputRule<m>>(from_x, window(s_.x, n, y0 - s_.top, x0 - s_.left, kSize), s_.x.c, x_distance_,
                                     [&](int64_t v) { return x + t * x_row_ + v * kLanes; });
      transform_window<GradientRule<m>>(from_dy, window(s_.dy, n, y0, x0, m), s_.dy.c, dy_distance_,
                                        [&](int64_t v) { return dy + columns.at(t, v); });
    });
  }

  void write_taps(const Launch& l, int64_t p, int64_t c0) const {
    float taps[kChunk][kTaps][kPanel];
    const int64_t depth = std::min(kChunk, sums_.rows - c0), width = sums_.width(p);
    for (int64_t c = 0; c < depth; ++c) {
      for (int64_t v = 0; v < width; ++v) {
        const float* from = scratch(l, 0) + kPoints * (x_distance_ + dy_distance_) + sums_.at(c0 + c, p * kPanelVectors + v);
        const auto sum = [&](int i, int j) {
          const float* at = from + (i * kSize + j) * sum_distance_;
          Vec value = load(at);
          for (int64_t g = 1; g < groups_; ++g) value += load(at + g * group_floats());
          return value;
        };
        transform<KernelRule<m>>(sum, [&](int i, int j, Vec value) { store(taps[c][i * 3 + j] + v * kLanes, value); });
      }
    }
    const int64_t lanes = std::min(width * kLanes, s_.dy.c - p * kPanel);
    auto* dw = static_cast<float*>(l.out[0]);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      float* to = dw + ((p * kPanel + lane) * s_.x.c + c0) * kTaps;
      for (int64_t c = 0; c < depth; ++c) {
        for (int64_t tap = 0; tap < kTaps; ++tap) to[c * kTaps + tap] = taps[c][tap][lane];
      }
    }
  }

  Shapes s_;
  TileGrid grid_;
  int threads_;
  Panels sums_;
  int64_t groups_, block_;
  int64_t x_row_, x_distance_, dy_distance_, sum_distance_;
};

}  // namespace
}  // namespace winograd

std::unique_ptr<Kernel> winograd_backward_weight(const Problem<Conv2dParams>& p, int m) {
  using namespace winograd;
  const TensorSpec &dy = p.in[0], &x = p.in[1], &dw = p.out[0];
  if (!applies(p.params, x, dw, dy, m)) return nullptr;
  const Shapes s{x.shape[0],
                 {x.shape[2], x.shape[3], x.shape[1]},
                 {dy.shape[2], dy.shape[3], dy.shape[1]},
                 p.params.padding[0],
                 p.params.padding[2]};
  if (m == 2) return std::make_unique<BackwardWeight<2>>(s, p.threads);
  return std::make_unique<BackwardWeight<4>>(s, p.threads);
}

}  // namespace plumb::cpu
