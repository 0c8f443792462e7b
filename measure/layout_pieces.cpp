#include "measure/layout_pieces.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "dispatch/timing.h"
#include "dispatch/trial.h"
#include "measure/conv2d_error.h"
#include "measure/onednn/raw.h"
#include "ops/convert.h"
#include "ops/random.h"

namespace plumb::measure {

namespace {

bool has_weight(std::string_view kernel) { return kernel.starts_with("conv2d_") || kernel.starts_with("linear_"); }

std::string direction_of(std::string_view kernel) {
  for (const std::string_view d : {"backward_input", "backward_weight", "backward", "forward"}) {
    if (kernel.find(d) != kernel.npos) return std::string(d);  // anywhere in the name: "linear_backward_weight_bias"
  }
  return "";
}

std::vector<std::string> layers_with_weights(const models::Network& network) {
  std::vector<std::string> names;
  for (const auto& p : network.parameters()) {
    if (p.tensor.rank() > 1) names.push_back(p.name.substr(0, p.name.rfind('.')));
  }
  return names;
}

// The seconds of the fastest run, on the host or another device.
double seconds_of(Device device, const detail::Run& work, const detail::TimedOptions& options = {}) {
  return detail::least_seconds(device, work, {{20}, {3, 0.3}}, options);
}
// The same for ops on tensors; they allocate memory while they run, so a device cannot replay them.
double seconds_of_ops(Device device, const std::function<void()>& work) {
  const NoGrad no_grad;
  return seconds_of(device, [&](Runtime::Stream) { work(); }, {.can_be_captured = false});
}

Direction raw_direction(const std::string& direction) {
  for (const Direction d : kDirections) {
    if (direction == to_string(d)) return d;
  }
  fail("layout: direction {} is unknown", direction);
}

RawLinear raw_linear(const PreparedKernel& p, const std::string& direction) {
  const auto in = p.in(), out = p.out();
  switch (const Direction d = raw_direction(direction)) {
    case Direction::kForward: return {d, in[0], in[1], out[0]};
    case Direction::kBackwardInput: return {d, out[0], in[1], in[0]};
    case Direction::kBackwardWeight: return {d, in[1], out[0], in[0]};
  }
  return {};
}

// The tensors of a convolution have the same places.
RawConv2d raw_conv2d(const PreparedKernel& p, const std::string& direction) {
  const RawLinear l = raw_linear(p, direction);
  Conv2dParams params;
  std::memcpy(static_cast<void*>(&params), p.params.data(), sizeof params);
  params.activation = Activation::kNone;
  return {l.direction, l.x, l.w, l.y, params};
}

// Seconds of casting all operands to f32 and back, as a kernel does that computes bf16 in f32.
double casts(const PreparedKernel& p) {
  double seconds = 0;
  for (const TensorSpec& s : p.specs) {
    const Tensor narrow = uniform(s, -1, 1, 1), wide = to(narrow, DType::kF32);
    const bool is_input = &s < p.specs.data() + p.in().size();
    seconds += seconds_of_ops(p.policy.device, [&] { is_input ? to(narrow, DType::kF32) : to(wide, s.dtype); });
  }
  return seconds;
}

// Seconds of converting an im2col product's activations, other than x, between their layout and rows of pixels.
double rows_of_pixels(const PreparedKernel& p) {
  const bool is_forward = p.kind == &plumb::detail::kind_of<Conv2dForward>;
  const TensorSpec& s = is_forward ? p.out()[0] : p.in()[0];
  const Tensor given = uniform(is_forward ? s.with(Layout::kNhwc) : s, -1, 1, 1);
  const Layout wanted = is_forward ? s.layout : Layout::kNhwc;
  return seconds_of_ops(p.policy.device, [&] { to(given, wanted); });
}

// Seconds of an algorithm's layout conversions; oneDNN's are timed on the same work written against oneDNN alone.
double reorders(const PreparedKernel& p, const std::string& direction, std::string_view algorithm) {
  if (algorithm == "im2col") return rows_of_pixels(p);
  const auto raw = std::string_view(p.kind->name).starts_with("conv2d") ? raw_same(raw_conv2d(p, direction), algorithm)
                                                                        : raw_same(raw_linear(p, direction), algorithm);
  if (!raw) return 0;
  raw->run();
  return seconds_of(Device(), [&](Runtime::Stream) { raw->convert(); });
}

// Seconds of the conversions inside a kernel: casts of its operands, and the algorithm's layout conversions.
double inner_conversions(const Piece& piece) {
  constexpr std::string_view kWidened = "via_f32_";
  const PreparedKernel& p = *piece.kernel;
  const KernelInfo& info = p.kernel->info();
  if (!info.algorithm.starts_with(kWidened)) return reorders(p, piece.direction, info.algorithm);
  if (info.conversions == static_cast<int>(p.specs.size())) return casts(p);
  PreparedKernel wide;  // the work's description, without a kernel
  wide.kind = p.kind;
  wide.n_in = p.n_in;
  wide.params = p.params;
  for (const TensorSpec& s : p.specs) wide.specs.push_back(s.with(DType::kF32));
  return casts(p) + reorders(wide, piece.direction, std::string_view(info.algorithm).substr(kWidened.size()));
}

template <class Raw>
double seconds_of_best(const Raw& work) {
  const auto raw = raw_best(work);
  return raw ? seconds_of(Device(), [&](Runtime::Stream) { raw->run(); }) : 0;
}

}  // namespace

// Backward visits the layers in the reverse order of forward.
std::vector<Piece> pieces_of(const Program& program, const models::Network& network) {
  const std::vector<std::string> names = layers_with_weights(network);
  std::map<std::string, size_t> met;
  std::vector<Piece> pieces;
  for (const PreparedKernel* p : program.kernels()) {
    const std::string kernel = p->kind->name, direction = direction_of(kernel);
    if (kernel == "repack") continue;  // timed with the kernel that needs the pack
    if (!has_weight(kernel)) {
      pieces.push_back({kernel, p, direction});
      continue;
    }
    const bool is_both = direction == "backward";  // one kernel for both gradients
    const size_t i = met[is_both ? "backward_weight" : direction]++;
    if (is_both) ++met["backward_input"];
    PLUMB_CHECK(i < names.size(), "layout: {} has more kernels with weights than layers", network.name());
    pieces.push_back({direction == "forward" ? names[i] : names[names.size() - 1 - i], p, direction});
  }
  return pieces;
}

Timing time_of(const Piece& piece) {
  const PreparedKernel& p = *piece.kernel;
  const Device device = p.policy.device;
  detail::Scratch scratch(p.in(), p.out(), {}, device);
  const detail::Trial trial(scratch, p.in(), *p.kernel);
  Timing t;
  t.seconds = seconds_of(device, [&](Runtime::Stream stream) { trial.run(stream); });
  if (p.kernel->info().algorithm.find("winograd") != std::string::npos) {
    t.error = conv2d_error(p, scratch.in(), scratch.out()[0]);
  }
  if (p.kernel->info().conversions) {
    t.conversions = inner_conversions(piece);
  } else if (!p.kernel->info().packs.empty()) {
    t.conversions = seconds_of(device, [&](Runtime::Stream stream) { trial.pack(stream); });
  }
  return t;
}

double OnednnBest::seconds(const Piece& piece) {
  if (!has_weight(piece.kernel->kind->name) || !piece.kernel->policy.device.is_cpu()) return 0;
  const std::string key = piece.layer + " " + piece.direction;
  const auto it = known_.find(key);
  if (it != known_.end()) return it->second;
  const PreparedKernel& p = *piece.kernel;
  if (std::string_view(p.kind->name).starts_with("conv2d")) {
    known_[key] = seconds_of_best(raw_conv2d(p, piece.direction));
  } else if (piece.direction != "backward") {
    known_[key] = seconds_of_best(raw_linear(p, piece.direction));
  } else {
    for (const Direction d : {Direction::kBackwardInput, Direction::kBackwardWeight}) {
      known_[key] += seconds_of_best(RawLinear{d, p.in()[1], p.in()[2], p.in()[0]});
    }
  }
  return known_[key];
}

}  // namespace plumb::measure
