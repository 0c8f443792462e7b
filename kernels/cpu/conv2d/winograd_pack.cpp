#include "kernels/cpu/conv2d/winograd_pack.h"

#include <cstdlib>

#include "dispatch/pack.h"
#include "kernels/cpu/conv2d/winograd_tiles.h"
#include "kernels/cpu/movement/transpose_tiles.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/wrappers/via_f32.h"

namespace plumb::cpu::winograd {
namespace {

template <int m>
class Packer final : public Kernel {
 public:
  explicit Packer(const WeightPack& pack)
      : Kernel(message("plumb:winograd_weights:f{}x{}_3x3:{}", m, m, simd::kIsa)), pack_(pack) {}

  void run(const Launch& l) const override {
    const auto* w = static_cast<const float*>(l.in[0]);
    auto* u = static_cast<float*>(l.out[0]);
    const int64_t chunks = ceil_div(pack_.inputs(), kChunk), units = pack_.panels().count() * chunks;
    const int64_t unit_bytes = kChunk * kPanel * 4 * (kTaps + (m + 2) * (m + 2));
    parallel_for(units, kGrainBytes / unit_bytes, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) pack_chunk(w, u, i / chunks, i % chunks * kChunk);
    });
  }

 private:
  // Row `lane` of w, which holds one output channel, becomes column `lane` of the taps.
  void transpose(const float* w, int64_t lanes, int64_t n, float* taps) const {
    int64_t from[kPanel], to[kChunk * kTaps];
    for (int64_t lane = 0; lane < lanes; ++lane) from[lane] = lane * pack_.ic * kTaps;
    for (int64_t i = 0; i < n; ++i) to[i] = i * kPanel;
    const Rows<const uint32_t> x{reinterpret_cast<const uint32_t*>(w), from, lanes};
    const Rows<uint32_t> y{reinterpret_cast<uint32_t*>(taps), to, n};
    if (std::min(lanes, n) < kTile<uint32_t>) return transpose_elements(x, y);
    transpose_tiles(x, y, {}, true);
  }

  // Packs up to kChunk input channels from k0 on, for the output channels of panel p.
  void pack_chunk(const float* w, float* u, int64_t p, int64_t k0) const {
    float taps[kChunk][kTaps][kPanel];
    const Panels panels = pack_.panels();
    const int64_t depth = std::min(kChunk, pack_.inputs() - k0), width = panels.width(p);
    const int64_t lanes = std::min(width * kLanes, pack_.outputs() - p * kPanel);
    if (pack_.use != Use::kForward) {
      const int64_t last = pack_.use == Use::kTurned ? kTaps - 1 : 0;
      for (int64_t k = 0; k < depth; ++k) {
        for (int64_t lane = 0; lane < lanes; ++lane) {
          const float* from = w + ((k0 + k) * pack_.ic + p * kPanel + lane) * kTaps;
          for (int64_t tap = 0; tap < kTaps; ++tap) taps[k][std::abs(last - tap)][lane] = from[tap];
        }
      }
    } else {
      transpose(w + (p * kPanel * pack_.ic + k0) * kTaps, lanes, depth * kTaps, taps[0][0]);
    }
    const int64_t distance = pack_.distance();
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t v = 0; v < width; ++v) {
        const int64_t valid = lanes - v * kLanes;
        const auto at = [&](int i, int j) {
          const float* tap = taps[k][i * 3 + j] + v * kLanes;
          return valid >= kLanes ? load(tap) : load(tap, valid);
        };
        float* to = u + panels.at(k0 + k, p * kPanelVectors + v);
        transform<WeightRule<m>>(at, [&](int i, int j, Vec x) { store(to + (i * (m + 2) + j) * distance, x); });
      }
    }
  }

  WeightPack pack_;
};

}  // namespace

int64_t WeightPack::distance() const { return odd_lines(panels().floats()); }

size_t WeightPack::bytes() const { return static_cast<size_t>((m + 2) * (m + 2) * distance()) * sizeof(float); }

Layout pack_layout(const WeightPack& pack) {
  constexpr const char* kSuffix[] = {"", "_turned", "_adjoint"};
  const std::string name = message("winograd_f{}x{}{}", pack.m, pack.m, kSuffix[static_cast<size_t>(pack.use)]);
  const auto packer = [pack]() -> std::unique_ptr<Kernel> {
    if (pack.m == 2) return std::make_unique<Packer<2>>(pack);
    return std::make_unique<Packer<4>>(pack);
  };
  const auto make = [=](const TensorSpec& w) {
    return w.dtype == DType::kF32 ? packer() : via_f32(packer(), {&w, 1}, w.with(DType::kF32));
  };
  return register_pack(pack, {name, pack.bytes(), make});
}

}  // namespace plumb::cpu::winograd
