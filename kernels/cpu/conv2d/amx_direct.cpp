#include "kernels/cpu/conv2d/amx_direct.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/conv2d/input_phases.h"
#include "kernels/cpu/conv2d/tap_weights.h"
#include "kernels/cpu/conv2d/window_bands.h"
#include "kernels/cpu/gemm/amx_block.h"
#include "kernels/cpu/gemm/pieces.h"

namespace plumb::cpu {
namespace {

using T = Bfloat16;
constexpr char kName[] = "plumb:amx_direct";

std::unique_ptr<Kernel> forward(const WindowConv& c, int threads) {
  WindowBands bands(c.windows(), c.x.shape[0], c.outputs(), threads);
  if (!bands.exist()) return nullptr;
  Pieces pieces;
  const size_t memory = pieces.add<char>(static_cast<int64_t>(bands.bytes()));
  const size_t bias = pieces.add<float>(c.has_bias ? c.weights.outputs : 0);
  auto kernel = make_kernel(kName, [=, bands = std::move(bands)](const Launch& l) {
    const auto in = [&](size_t i) { return static_cast<const T*>(l.in[i]); };
    const float* of_columns = nullptr;
    if (c.has_bias) of_columns = widened(piece_at<float>(l, bias), in(2), c.weights.outputs);
    for (int64_t group = 0; group < c.params.groups; ++group) {
      const PackedResult y = c.result(static_cast<T*>(l.out[0]), group, of_columns);
      bands.run(in(0) + group * c.weights.channels, c.columns(in(1), group), y, piece_at<char>(l, memory));
    }
  });
  kernel->info().workspace_bytes = pieces.bytes();
  return kernel;
}

// The gradient of the pixels of x of one phase.
struct PhaseBands {
  InputPhase phase;
  WindowBands bands;
  PhaseBands(const WindowConv& c, InputPhase of, int threads)
      : phase(std::move(of)), bands(phase.windows, c.x.shape[0], c.weights.channels, threads) {}
};

std::unique_ptr<Kernel> backward_input(const WindowConv& c, int threads) {
  InputPhases of_x = input_phases(c.x.shape, c.w.shape, c.y.shape, c.params);
  std::vector<PhaseBands> phases;
  size_t bytes = 0;
  for (InputPhase& phase : of_x.all) {
    phases.emplace_back(c, std::move(phase), threads);
    if (!phases.back().bands.exist()) return nullptr;
    bytes = std::max(bytes, phases.back().bands.bytes());
  }
  auto kernel = make_kernel(kName, [=, phases = std::move(phases), left_out = of_x.leave_pixels_out](const Launch& l) {
    auto* dx = static_cast<T*>(l.out[0]);
    const auto *dy = static_cast<const T*>(l.in[0]), *w = static_cast<const T*>(l.in[1]);
    if (left_out) put_zeros(dx, c.x.numel());
    for (const auto& [phase, bands] : phases) {
      for (int64_t group = 0; group < c.params.groups; ++group) {
        const int64_t first = group * c.outputs();
        const TapColumns<T> b(c.weights, c.outputs(), phase.taps, w + first * c.weights.taps());
        PackedResult to{dx + phase.at + group * c.weights.channels, phase.places};
        to.stream = is_large<T>(c.x.numel());
        bands.run(dy + first, b, to, l.workspace);
      }
    }
  });
  kernel->info().workspace_bytes = bytes;
  return kernel;
}

}  // namespace

std::unique_ptr<Kernel> conv2d_amx_direct(InnerProduct which, const Problem<Conv2dParams>& p) {
  const WindowConv c(which, p);
  if (c.x.dtype != DType::kBf16 || !has_amx() || !c.is_nhwc() || which == InnerProduct::kBackwardWeight) return nullptr;
  auto kernel = which == InnerProduct::kForward ? forward(c, p.threads) : backward_input(c, p.threads);
  if (kernel) c.ask_for_pack(*kernel);
  return kernel;
}

}  // namespace plumb::cpu
