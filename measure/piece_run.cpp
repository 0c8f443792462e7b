#include "measure/piece_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/linear.h"
#include "measure/conv2d_error.h"
#include "ops/convert.h"
#include "ops/random.h"

namespace plumb::measure {
namespace {

using Specs = std::span<const TensorSpec>;

Direction raw_direction(const std::string& direction) {
  for (const Direction d : kDirections) {
    if (direction == to_string(d)) return d;
  }
  fail("layout: direction {} is unknown", direction);
}

template <class Params>
Params params_of(const Piece& piece) {
  Params params;
  std::memcpy(static_cast<void*>(&params), piece.kernel->params.data(), sizeof params);
  return params;
}

// The work of a kernel on tensors of these specs, its inputs and its output.
RawLinear raw_linear(const Piece& piece, Specs s) {
  switch (const Direction d = raw_direction(piece.direction)) {
    case Direction::kForward: return {d, s[0], s[1], s.back()};
    case Direction::kBackwardInput: return {d, s.back(), s[1], s[0]};
    case Direction::kBackwardWeight: return {d, s[1], s.back(), s[0]};
  }
  return {};
}

// The tensors of a convolution have the same places.
RawConv2d raw_conv2d(const Piece& piece, Specs specs) {
  const RawLinear l = raw_linear(piece, specs);
  auto params = params_of<Conv2dParams>(piece);
  params.activation = Activation::kNone;
  return {l.direction, l.x, l.w, l.y, params};
}

bool is_conv2d(const Piece& piece) { return std::string_view(piece.kernel->kind->name).starts_with("conv2d"); }

// Inputs and the first output, as raw work sees them.
std::vector<TensorSpec> work_specs(const PreparedKernel& p) {
  std::vector<TensorSpec> specs(p.in().begin(), p.in().end());
  specs.push_back(p.out()[0]);
  return specs;
}

}  // namespace

void TimedParts::add(Device device, detail::Run work, const detail::TimedOptions& options) {
  constexpr double kLong = 50e-6;  // seconds; the clock costs a thousandth of it
  auto timed = std::make_unique<detail::Timed>(device, std::move(work), options);
  const double one = std::min(timed->seconds(), timed->seconds());
  const int times = static_cast<int>(std::clamp(std::ceil(kLong / std::max(1e-9, one)), 1., 256.));
  parts_.push_back({std::move(timed), device.is_cpu() ? times : 1});
}

double TimedParts::seconds() {
  double all = 0;
  for (const Part& part : parts_) {
    double of_part = 0;
    for (int i = 0; i < part.times; ++i) of_part += part.timed->seconds();
    all += of_part / part.times;
  }
  return all;
}

PieceRun::PieceRun(const Piece& piece)
    : piece_(piece),
      scratch_(piece.kernel->in(), piece.kernel->out(), {}, piece.kernel->policy.device),
      trial_(scratch_, piece.kernel->in(), *piece.kernel->kernel) {
  run_.add(device(), [this](Runtime::Stream stream) { trial_.run(stream); });
  const KernelInfo& info = piece.kernel->kernel->info();
  if (info.conversions) {
    add_inner_conversions();
  } else if (!info.packs.empty()) {
    add_packing();
  }
}

void PieceRun::add_packing() {
  conversions_.add(device(), [this](Runtime::Stream stream) { trial_.pack(stream); });
}

std::optional<double> PieceRun::error() const {
  const PreparedKernel& p = *piece_.kernel;
  if (p.kernel->info().algorithm.find("winograd") == std::string::npos) return {};
  return conv2d_error(p, scratch_.in(), scratch_.out()[0]);
}

// Casts of the operands, and the algorithm's layout conversions.
void PieceRun::add_inner_conversions() {
  constexpr std::string_view kWidened = "via_f32_";
  const PreparedKernel& p = *piece_.kernel;
  const KernelInfo& info = p.kernel->info();
  std::vector<TensorSpec> specs = work_specs(p);
  if (!info.algorithm.starts_with(kWidened)) return add_reorders(specs, info.algorithm);
  if (info.conversions == static_cast<int>(p.specs.size() - info.packs.size())) {
    add_casts(false);
    if (!info.packs.empty()) add_packing();  // which widens
    return;
  }
  add_casts(true);
  for (TensorSpec& s : specs) s = s.with(DType::kF32);
  add_reorders(specs, std::string_view(info.algorithm).substr(kWidened.size()));
}

// The operands to f32 and back, as a kernel does that computes bf16 in f32: all, or those that are not packed.
void PieceRun::add_casts(bool of_packed) {
  const PreparedKernel& p = *piece_.kernel;
  const std::vector<PackRequest>& packs = p.kernel->info().packs;
  for (size_t i = 0; i < p.specs.size(); ++i) {
    const auto is_it = [i](const PackRequest& r) { return r.input == static_cast<int>(i); };
    if (!of_packed && std::any_of(packs.begin(), packs.end(), is_it)) continue;
    const Tensor narrow = uniform(p.specs[i], -1, 1, 1), wide = to(narrow, DType::kF32);
    const auto cast = [=, is_input = i < p.in().size(), dtype = p.specs[i].dtype](Runtime::Stream) {
      const NoGrad no_grad;
      is_input ? to(narrow, DType::kF32) : to(wide, dtype);
    };
    conversions_.add(device(), cast, {.can_be_captured = false});  // ops allocate, which a device cannot replay
  }
}

// An im2col product's activations, other than x, between their layout and rows of pixels.
void PieceRun::add_rows_of_pixels(Specs specs) {
  const bool is_forward = piece_.kernel->kind == &detail::kind_of<Conv2dForward>;
  const TensorSpec& s = is_forward ? specs.back() : specs[0];
  const Tensor given = uniform(is_forward ? s.with(Layout::kNhwc) : s, -1, 1, 1);
  const auto convert = [given, wanted = is_forward ? s.layout : Layout::kNhwc](Runtime::Stream) {
    const NoGrad no_grad;
    to(given, wanted);
  };
  conversions_.add(device(), convert, {.can_be_captured = false});
}

// oneDNN's conversions are timed on the same work written against oneDNN alone.
void PieceRun::add_reorders(Specs specs, std::string_view algorithm) {
  if (algorithm == "im2col") return add_rows_of_pixels(specs);
  const std::shared_ptr<RawRun> raw = is_conv2d(piece_) ? raw_same(raw_conv2d(piece_, specs), algorithm)
                                                        : raw_same(raw_linear(piece_, specs), algorithm);
  if (!raw) return;
  raw->run();
  conversions_.add(Device(), [raw](Runtime::Stream) { raw->convert(); });
}

OnednnBest::OnednnBest(const Piece& piece) {
  const PreparedKernel& p = *piece.kernel;
  if (!has_weight(p.kind->name) || !p.policy.device.is_cpu()) return;
  std::vector<std::shared_ptr<RawRun>> raws;
  const bool is_forward = piece.direction == "forward", with_bias = is_forward && p.in().size() > 2;
  if (is_conv2d(piece)) {
    RawConv2d raw = raw_conv2d(piece, work_specs(p));
    raw.with_bias = with_bias;
    if (is_forward) raw.params.activation = params_of<Conv2dParams>(piece).activation;
    raws = {raw_best(raw)};
  } else if (piece.direction != "backward") {
    RawLinear raw = raw_linear(piece, work_specs(p));
    raw.with_bias = with_bias;
    if (is_forward) raw.activation = params_of<LinearParams>(piece).activation;
    raws = {raw_best(raw)};
  } else {
    raws = {raw_best(RawLinearBackward{p.in()[1], p.in()[2], p.in()[0]})};
  }
  for (const auto& raw : raws) {
    if (raw) runs_.add(Device(), [raw](Runtime::Stream) { raw->run(); });
  }
}

}  // namespace plumb::measure
