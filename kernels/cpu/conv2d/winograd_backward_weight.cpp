#include "kernels/cpu/cache.h"
#include "kernels/cpu/conv2d/winograd.h"
#include "kernels/cpu/conv2d/winograd_multiply.h"
#include "kernels/cpu/conv2d/winograd_tiles.h"
#include "kernels/cpu/parallel.h"

namespace plumb::cpu {
namespace winograd {
namespace {

struct Task {
  int64_t n;
  Image x, dy;
  int64_t top, left;  // padding of x
};

// Transforms tiles of dy and their windows of x to points. For each point, sums the product over the tiles in a matrix
// of IC x OC, and at the end transforms these sums to taps. If the sums fit in a thread's cache, each thread keeps its
// own sums over some of the tiles; otherwise all threads work on one block of tiles, and each computes a part of the
// sums.
template <int m, class T>
class BackwardWeight final : public Kernel {
 public:
  BackwardWeight(const Task& task, int threads)
      : Kernel(message("plumb:winograd_nhwc:f3x3_{}x{}:{}", m, m, simd::kIsa)),
        task_(task),
        grid_(task.n, task.dy, m),
        sums_{task.x.c, vectors_of(task.dy.c)},
        x_row_(vectors_of(task.x.c) * kLanes) {
    plan(threads);
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
    const int64_t chunks = ceil_div(sums_.rows, kChunk), units = sums_.count() * chunks;
    parallel_for(units, kGrainBytes / (kChunk * kPanel * 4 * kPoints * groups_), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) write_taps(l, i / chunks, i % chunks * kChunk);
    });
  }

 private:
  static constexpr int kSize = m + 2, kPoints = kSize * kSize;

  int64_t group_floats() const { return kPoints * (x_distance_ + dy_distance_ + sum_distance_); }
  float* scratch(const Launch& l, int64_t group) const {
    return static_cast<float*>(l.workspace) + group * group_floats();
  }

  void plan(int threads) {
    constexpr int64_t kSmall = 20000;  // vector instructions; less work is not worth starting threads
    constexpr int64_t kLeastTiles = 32, kLeastShare = 8;
    const bool small = kPoints * grid_.count() * sums_.rows * sums_.vectors < kSmall;
    const bool cached = kPoints * sums_.floats() * 4 <= l2_bytes();
    threads_ = small ? 1 : threads;
    groups_ = cached && grid_.count() >= kLeastTiles * threads_ ? threads_ : 1;
    const int64_t tile_floats = x_row_ + sums_.vectors * kLanes;
    if (cached) {
      block_ = l2_bytes() / 2 / (kPoints * tile_floats * 4);
    } else {
      // A block whose points take as much memory as the sums balances the traffic of both.
      block_ = sums_.floats() / tile_floats;
    }
    block_ = std::max(block_, groups_ > 1 ? kLeastTiles : kLeastShare * threads_);
    block_ = std::min(block_, ceil_div(grid_.count(), groups_));
  }

  void accumulate(const Launch& l, int64_t group, Range tiles, int team) const {
    float *x_points = scratch(l, group), *dy_points = x_points + kPoints * x_distance_;
    float* sums = dy_points + kPoints * dy_distance_;
    const int64_t blocks = ceil_div(tiles.size(), block_);
    for (int64_t b = 0; b < blocks; ++b) {
      const Range r = piece(tiles.size(), b, blocks);
      parallel_team(team, [&](int64_t t, int64_t count) {
        const Range part = piece(r.size(), t, count);
        transform_tiles(l, x_points, dy_points, tiles.begin + r.begin, r.size(), part);
      });
      parallel_team(team, [&](int64_t t, int64_t count) {
        const Panels columns{r.size(), sums_.vectors};
        const Range units = piece(kPoints * sums_.count(), t, count);
        for (int64_t u = units.begin; u < units.end; ++u) {
          const int64_t point = u / sums_.count(), p = u % sums_.count();
          multiply_panel<Left::kByColumn>(sums_.rows, columns.rows, sums_.width(p), x_points + point * x_distance_,
                                          x_row_, dy_points + point * dy_distance_ + columns.offset(p),
                                          sums + point * sum_distance_ + sums_.offset(p), b > 0);
        }
      });
    }
  }

  // Transforms tiles `part` of a block of `count` tiles that starts at tile `first`.
  void transform_tiles(const Launch& l, float* x_points, float* dy_points, int64_t first, int64_t count,
                       Range part) const {
    const auto *dy = static_cast<const T*>(l.in[0]), *x = static_cast<const T*>(l.in[1]);
    const Panels columns{count, sums_.vectors};
    grid_.for_each({first + part.begin, first + part.end}, [&](int64_t i, int64_t n, int64_t y0, int64_t x0) {
      const int64_t t = part.begin + i;
      transform_window<InputRule<m>>(x, window(task_.x, n, y0 - task_.top, x0 - task_.left, kSize), task_.x.c,
                                     x_distance_, [&](int64_t v) { return x_points + t * x_row_ + v * kLanes; });
      transform_window<GradientRule<m>>(dy, window(task_.dy, n, y0, x0, m), task_.dy.c, dy_distance_,
                                        [&](int64_t v) { return dy_points + columns.at(t, v); });
    });
  }

  // Writes the taps of up to kChunk input channels from c0 on, for the output channels of panel p.
  void write_taps(const Launch& l, int64_t p, int64_t c0) const {
    float taps[kChunk][kTaps][kPanel];
    const int64_t depth = std::min(kChunk, sums_.rows - c0), width = sums_.width(p);
    for (int64_t c = 0; c < depth; ++c) {
      for (int64_t v = 0; v < width; ++v) {
        const float* from =
            scratch(l, 0) + kPoints * (x_distance_ + dy_distance_) + sums_.at(c0 + c, p * kPanelVectors + v);
        const auto sum = [&](int i, int j) {
          const float* at = from + (i * kSize + j) * sum_distance_;
          Vec value = load(at);
          for (int64_t g = 1; g < groups_; ++g) value += load(at + g * group_floats());
          return value;
        };
        transform<KernelRule<m>>(sum, [&](int i, int j, Vec value) { store(taps[c][i * 3 + j] + v * kLanes, value); });
      }
    }
    const int64_t lanes = std::min(width * kLanes, task_.dy.c - p * kPanel);
    auto* dw = static_cast<T*>(l.out[0]);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      T* to = dw + ((p * kPanel + lane) * task_.x.c + c0) * kTaps;
      for (int64_t c = 0; c < depth; ++c) {
        for (int64_t tap = 0; tap < kTaps; ++tap) to[c * kTaps + tap] = static_cast<T>(taps[c][tap][lane]);
      }
    }
  }

  Task task_;
  TileGrid grid_;
  Panels sums_;
  int64_t x_row_;  // floats per transformed window of x, at one point
  int threads_;
  int64_t groups_;  // of threads; each group has its own sums
  int64_t block_;   // tiles per block
  int64_t x_distance_, dy_distance_, sum_distance_;
};

template <class T>
std::unique_ptr<Kernel> make(const Task& task, int m, int threads) {
  if (m == 2) return std::make_unique<BackwardWeight<2, T>>(task, threads);
  return std::make_unique<BackwardWeight<4, T>>(task, threads);
}

}  // namespace
}  // namespace winograd

std::unique_ptr<Kernel> winograd_backward_weight(const Problem<Conv2dParams>& p, int m) {
  using namespace winograd;
  const TensorSpec &dy = p.in[0], &x = p.in[1], &dw = p.out[0];
  if (!applies(p.params, x, dw, dy, m)) return nullptr;
  const Task task{x.shape[0], Image(x), Image(dy), p.params.padding[0], p.params.padding[2]};
  return x.dtype == DType::kF32 ? make<float>(task, m, p.threads) : make<Bfloat16>(task, m, p.threads);
}

}  // namespace plumb::cpu
