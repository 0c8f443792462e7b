#include "kernels/cpu/parallel.h"
#include "kernels/cpu/winograd.h"
#include "kernels/cpu/winograd_pack.h"
#include "kernels/cpu/winograd_tiles.h"

namespace plumb::cpu {
namespace winograd {
namespace {

struct Shapes {
  int64_t n;
  Image in, out;
  int64_t top, left;  // padding of the input; negative crops it
  bool bias, relu;
};

// How the work is cut: tiles x panels of output channels, one part a thread; blocks of tiles within a part.
struct Plan {
  int64_t tile_parts = 1, panel_parts = 1, block = 1;
};

template <int m>
class Convolution final : public Kernel {
 public:
  static constexpr int kSize = m + 2, kPoints = kSize * kSize;

  Convolution(const Shapes& s, const WeightPack& weights, int threads)
      : Kernel(message("plumb:winograd_nhwc:f{}x{}_3x3:{}", m, m, kIsa)),
        s_(s),
        grid_(s.n, s.out, m),
        weights_(weights),
        outputs_(weights.panels().vectors) {
    plan(threads);
    v_row_ = vectors_of(s.in.c) * kLanes;
    v_distance_ = odd_lines(plan_.block * v_row_);
    m_distance_ = odd_lines(plan_.block * outputs_ * kLanes);
    info().workspace_bytes = static_cast<size_t>(parts() * thread_floats()) * sizeof(float);
    info().packs.push_back({1, pack_layout(weights)});
  }

  void run(const Launch& l) const override {
    parallel_team(static_cast<int>(parts()), [&](int64_t part, int64_t) {
      auto* scratch = static_cast<float*>(l.workspace) + part * thread_floats();
      const Range tiles = piece(grid_.count(), part / plan_.panel_parts, plan_.tile_parts);
      const Range panels = piece(weights_.panels().count(), part % plan_.panel_parts, plan_.panel_parts);
      const int64_t blocks = (tiles.size() + plan_.block - 1) / plan_.block;
      for (int64_t b = 0; b < blocks; ++b) {
        const Range r = piece(tiles.size(), b, blocks);
        run_block(l, scratch, {tiles.begin + r.begin, tiles.begin + r.end}, panels);
      }
    });
  }

 private:
  int64_t parts() const { return plan_.tile_parts * plan_.panel_parts; }
  int64_t thread_floats() const { return kPoints * (v_distance_ + m_distance_); }

  void plan(int threads) {
    const int64_t tile_floats = kPoints * (vectors_of(s_.in.c) + outputs_) * kLanes;
    plan_.block = l2_bytes() / 2 / (tile_floats * 4);
    plan_.block = std::clamp<int64_t>(plan_.block, 32, 256);
    if (const char* e = getenv("TB")) plan_.block = atoi(e);
    double best = 1e300;
    const int64_t panels = weights_.panels().count();
    for (int64_t p = 1; p <= std::min<int64_t>(threads, panels); ++p) {
      const int64_t t = std::min<int64_t>(threads / p, grid_.count());
      const int64_t rows = (grid_.count() + t - 1) / t, width = (panels + p - 1) / p * kPanelVectors;
      const double c = static_cast<double>(s_.in.c), k = static_cast<double>(width), r = static_cast<double>(rows);
      const double cost = kPoints * (c * k * std::max(r, 8.) + r * (0.5 * c + 5 * k)) + (t * p > 1 ? 10000 : 0);
      if (cost < best) best = cost, plan_.tile_parts = t, plan_.panel_parts = p;
    }
    plan_.block = std::min(plan_.block, (grid_.count() + plan_.tile_parts - 1) / plan_.tile_parts);
  }

  void run_block(const Launch& l, float* scratch, Range tiles, Range panels) const {
    const auto* x = static_cast<const float*>(l.in[0]);
    const auto* u = static_cast<const float*>(l.in[1]);
    float *v = scratch, *mm = scratch + kPoints * v_distance_;
    grid_.for_each(tiles, [&](int64_t t, int64_t n, int64_t y0, int64_t x0) {
      const Window w = window(s_.in, n, y0 - s_.top, x0 - s_.left, kSize);
      transform_window<InputRule<m>>(x, w, s_.in.c, v_distance_,
                                     [&](int64_t i) { return v + t * v_row_ + i * kLanes; });
    });
    const Panels columns = weights_.panels(), result{tiles.size(), outputs_};
    for (int64_t point = 0; point < kPoints; ++point) {
      for (int64_t p = panels.begin; p < panels.end; ++p) {
        multiply_panel<Left::kByRow>(tiles.size(), s_.in.c, columns.width(p), v + point * v_distance_, v_row_,
                                     u + point * weights_.distance() + columns.offset(p),
                                     mm + point * m_distance_ + result.offset(p), false);
      }
    }
    const Range vectors{panels.begin * kPanelVectors, std::min(panels.end * kPanelVectors, outputs_)};
    grid_.for_each(tiles, [&](int64_t t, int64_t n, int64_t y0, int64_t x0) {
      const Window w = window(s_.out, n, y0, x0, m);
      for (int64_t i = vectors.begin; i < vectors.end; ++i) write(l, w, i, mm + result.at(t, i));
    });
  }

  void write(const Launch& l, const Window& w, int64_t v, const float* from) const {
    const int64_t tail = s_.out.c - v * kLanes;
    float* y = static_cast<float*>(l.out[0]) + v * kLanes;
    const auto write_with = [&](auto inside, auto whole) {
      Vec bias{};
      if (s_.bias) {
        const auto* b = static_cast<const float*>(l.in[2]) + v * kLanes;
        bias = whole ? load(b) : load(b, tail);
      }
      transform<OutputRule<m>>([&](int i, int j) { return load(from + (i * kSize + j) * m_distance_); },
                               [&](int i, int j, Vec value) {
                                 if (!inside && !w.has(i, j)) return;
                                 value += bias;
                                 if (s_.relu) value = relu(value);
                                 if (whole) {
                                   store(y + w.at(i, j), value);
                                 } else {
                                   store(y + w.at(i, j), value, tail);
                                 }
                               });
    };
    const std::true_type yes;
    const std::false_type no;
    if (tail < kLanes) return write_with(no, no);
    if (w.is_inside<m>()) return write_with(yes, yes);
    write_with(no, yes);
  }

  Shapes s_;
  TileGrid grid_;
  WeightPack weights_;
  int64_t outputs_;  // vectors of output channels
  Plan plan_;
  int64_t v_row_, v_distance_, m_distance_;
};

std::unique_ptr<Kernel> make(const Shapes& s, const WeightPack& weights, int threads) {
  if (weights.m == 2) return std::make_unique<Convolution<2>>(s, weights, threads);
  return std::make_unique<Convolution<4>>(s, weights, threads);
}

Image image_of(const TensorSpec& s) { return {s.shape[2], s.shape[3], s.shape[1]}; }

}  // namespace
}  // namespace winograd

std::unique_ptr<Kernel> winograd_forward(const Problem<Conv2dParams>& p, int m) {
  using namespace winograd;
  const TensorSpec &x = p.in[0], &w = p.in[1], &y = p.out[0];
  if (!applies(p.params, x, w, y, m)) return nullptr;
  if (p.in.size() == 3 && !(p.in[2] == TensorSpec({y.shape[1]}))) return nullptr;
  return make({x.shape[0], image_of(x), image_of(y), p.params.padding[0], p.params.padding[2], p.in.size() == 3,
               p.params.activation == Activation::kRelu},
              WeightPack(m, false, w), p.threads);
}

std::unique_ptr<Kernel> winograd_backward_input(const Problem<Conv2dParams>& p, int m) {
  using namespace winograd;
  const TensorSpec &dy = p.in[0], &w = p.in[1], &dx = p.out[0];
  if (!applies(p.params, dx, w, dy, m)) return nullptr;
  return make({dy.shape[0], image_of(dy), image_of(dx), 2 - p.params.padding[0], 2 - p.params.padding[2], false, false},
              WeightPack(m, true, w), p.threads);
}

}  // namespace plumb::cpu
