#include "kernels/cpu/conv2d/implicit_gemm.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/conv2d/amx_windows.h"
#include "kernels/cpu/conv2d/input_phases.h"
#include "kernels/cpu/conv2d/tap_weights.h"
#include "kernels/cpu/gemm/amx_panels.h"
#include "kernels/cpu/gemm/pieces.h"

namespace plumb::cpu {
namespace {

// Products with fewer columns leave most of a vector empty.
constexpr int64_t kLeastColumns = 4;

struct Conv : WindowConv {
  bool applies(InnerProduct which) const {
    if (!is_nhwc()) return false;
    switch (which) {
      case InnerProduct::kForward: return outputs() >= kLeastColumns;
      case InnerProduct::kBackwardInput: return weights.channels >= kLeastColumns && has_whole_words();
      case InnerProduct::kBackwardWeight: return weights.taps() >= kLeastColumns;
    }
    return false;
  }
  // Whether no word of the depth has outputs of two taps.
  bool has_whole_words() const { return x.dtype == DType::kF32 || outputs() % 2 == 0; }
  int64_t pixels() const { return y.shape[0] * y.shape[2] * y.shape[3]; }
};

// Windows as rows of a, where matrices have such rows.
template <class Rows>
using WindowsAs = std::conditional_t<std::is_same_v<Rows, AmxRows>, AmxWindows, WindowRows>;

template <class Rows>
std::unique_ptr<Kernel> forward(const Conv& c, int threads) {
  using T = typename Rows::Element;
  constexpr bool is_f32 = kInWord<T> == 1;
  const PackedProducts products(c.params.groups, c.pixels(), c.outputs(), ceil_div(c.weights.taps(), kInWord<T>),
                                threads, Rows::kForm);
  Pieces pieces;
  const size_t panels = pieces.add<float>(products.floats());
  const size_t bias = pieces.add<float>(!is_f32 && c.has_bias ? c.weights.outputs : 0);
  const bool has_sums = !is_f32 && products.keeps_sums();
  const size_t sums = pieces.add<float>(has_sums ? c.y.numel() : 0);
  auto kernel = make_kernel(product_name<Rows>("plumb:implicit_gemm"), [=, windows = c.windows()](const Launch& l) {
    const auto in = [&](size_t i) { return static_cast<const T*>(l.in[i]); };
    const float* of_columns = nullptr;
    if (c.has_bias) of_columns = widened(piece_at<float>(l, bias), in(2), c.weights.outputs);
    products.run(piece_at<float>(l, panels), [&](int64_t group, const PackedProduct& product, float* memory) {
      const WindowsAs<Rows> a(windows, in(0) + group * c.weights.channels);
      PackedResult y = c.result(static_cast<T*>(l.out[0]), group, of_columns);
      if (!is_f32) y.sums = has_sums ? piece_at<float>(l, sums) + group * c.outputs() : nullptr;
      product.run(a, c.columns(in(1), group), y, memory);
    });
  });
  kernel->info().workspace_bytes = pieces.bytes();
  return kernel;
}

// The gradient of the pixels of x of one phase.
struct PhaseProducts {
  InputPhase phase;
  PackedProducts products;
  PhaseProducts(const Conv& c, InputPhase of, int64_t in_word, int threads, const ProductForm& form)
      : phase(std::move(of)),
        products(c.params.groups, c.x.shape[0] * phase.windows.out_height * phase.windows.out_width, c.weights.channels,
                 phase.windows.taps() / in_word, threads, form) {}
};

template <class Rows>
std::unique_ptr<Kernel> backward_input(const Conv& c, int threads) {
  using T = typename Rows::Element;
  constexpr bool is_f32 = kInWord<T> == 1;
  InputPhases of_x = input_phases(c.x.shape, c.w.shape, c.y.shape, c.params);
  std::vector<PhaseProducts> phases;
  int64_t most_floats = 0;
  bool has_sums = false;
  for (InputPhase& phase : of_x.all) {
    phases.emplace_back(c, std::move(phase), kInWord<T>, threads, Rows::kForm);
    most_floats = std::max(most_floats, phases.back().products.floats());
    has_sums |= !is_f32 && phases.back().products.keeps_sums();
  }
  Pieces pieces;
  const size_t panels = pieces.add<float>(most_floats);
  const size_t sums = pieces.add<float>(has_sums ? c.x.numel() : 0);
  auto kernel =
      make_kernel(product_name<Rows>("plumb:implicit_gemm"),
                  [=, phases = std::move(phases), left_out = of_x.leave_pixels_out](const Launch& l) {
                    auto* dx = static_cast<T*>(l.out[0]);
                    const auto *dy = static_cast<const T*>(l.in[0]), *w = static_cast<const T*>(l.in[1]);
                    if (left_out) put_zeros(dx, c.x.numel());
                    for (const auto& [phase, products] : phases) {
                      const auto one = [&](int64_t group, const PackedProduct& product, float* memory) {
                        const int64_t first = group * c.outputs(), at = phase.at + group * c.weights.channels;
                        const WindowsAs<Rows> a(phase.windows, dy + first);
                        const TapColumns<T> b(c.weights, c.outputs(), phase.taps, w + first * c.weights.taps());
                        PackedResult to{dx + at, phase.places};
                        if (!is_f32) to.sums = has_sums ? piece_at<float>(l, sums) + at : nullptr;
                        to.stream = is_large<T>(c.x.numel());
                        product.run(a, b, to, memory);
                      };
                      products.run(piece_at<float>(l, panels), one);
                    }
                  });
  kernel->info().workspace_bytes = pieces.bytes();
  return kernel;
}

template <class Rows>
std::unique_ptr<Kernel> backward_weight(const Conv& c, int threads) {
  using T = typename Rows::Element;
  constexpr bool is_f32 = kInWord<T> == 1;
  const PackedProducts products(c.params.groups, c.outputs(), c.weights.taps(), ceil_div(c.pixels(), kInWord<T>),
                                threads, Rows::kForm);
  std::shared_ptr<const Kernel> turn = c.weights.is_either() ? nullptr : c.weights.turn(false);
  Pieces pieces;
  const size_t turned = pieces.add<T>(turn ? c.weights.numel() : 0);
  const bool has_sums = !is_f32 && products.keeps_sums();
  const size_t sums = pieces.add<float>(has_sums ? c.weights.numel() : 0);
  const size_t panels = pieces.add<float>(products.floats());
  auto kernel = make_kernel(product_name<Rows>("plumb:implicit_gemm"), [=, windows = c.windows()](const Launch& l) {
    const auto *dy = static_cast<const T*>(l.in[0]), *x = static_cast<const T*>(l.in[1]);
    void* dw = turn ? piece_at<T>(l, turned) : l.out[0];
    products.run(piece_at<float>(l, panels), [&](int64_t group, const PackedProduct& product, float* memory) {
      const int64_t first = group * c.outputs(), at = first * c.weights.taps();
      const Rows a({dy + first, c.weights.outputs, 1, c.pixels()}, c.outputs());
      const WindowColumns<T> b(windows, x + group * c.weights.channels, c.pixels());
      PackedResult result{static_cast<T*>(dw) + at, {c.weights.taps()}};
      if (!is_f32) result.sums = has_sums ? piece_at<float>(l, sums) + at : nullptr;
      product.run(a, b, result, memory);
    });
    if (turn) turn->run({&dw, l.out, nullptr});
  });
  kernel->info().workspace_bytes = pieces.bytes();
  return kernel;
}

}  // namespace

std::unique_ptr<Kernel> conv2d_implicit_gemm(InnerProduct which, const Problem<Conv2dParams>& p) {
  const Conv c{WindowConv(which, p)};
  if (!c.applies(which)) return nullptr;
  if (which == InnerProduct::kBackwardWeight) {
    return dispatch_rows(c.x.dtype, [&]<class Rows>() { return backward_weight<Rows>(c, p.threads); });
  }
  const auto make = [&]<class Rows>() {
    return which == InnerProduct::kForward ? forward<Rows>(c, p.threads) : backward_input<Rows>(c, p.threads);
  };
  const bool is_f32 = c.x.dtype == DType::kF32;
  if (!is_f32 && !(c.x.dtype == DType::kBf16 && has_amx())) return nullptr;
  auto kernel = is_f32 ? make.operator()<MatrixPanels<kBlockRows>>() : make.operator()<AmxRows>();
  c.ask_for_pack(*kernel);
  return kernel;
}

}  // namespace plumb::cpu
