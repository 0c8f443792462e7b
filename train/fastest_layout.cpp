#include "train/fastest_layout.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "core/runtime.h"
#include "core/stopwatch.h"
#include "dispatch/policy.h"
#include "dispatch/tuning_cache.h"
#include "kernels/threads.h"
#include "models/rounded.h"
#include "ops/random.h"
#include "train/training_step.h"

namespace plumb::training {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// A network's buffers, which a training pass writes, are at the end what they were, also if that pass fails.
class SavedBuffers {
 public:
  explicit SavedBuffers(const models::Network& network) : network_(network) {
    for (const auto& b : network.buffers()) saved_.push_back(b.tensor.clone());
  }
  SavedBuffers(const SavedBuffers&) = delete;
  SavedBuffers& operator=(const SavedBuffers&) = delete;
  ~SavedBuffers() {
    try {
      for (size_t i = 0; i < saved_.size(); ++i) {
        Tensor b = network_.buffers()[i].tensor;
        b.copy_from(saved_[i]);
      }
    } catch (const Error&) {  // of a device that is lost; the error under way tells it
    }
  }

 private:
  const models::Network& network_;
  TensorList saved_;
};

// The seconds of one training step on random numbers in a layout; of one only, if that is far behind `others`. Leaves
// the network unchanged.
double time_of_layout(const models::Network& network, Layout layout, DType dtype, int64_t batch, double others) {
  constexpr double kFarBehind = 1.5;
  const DeviceScope on(network.device());
  const Shape& in = network.input();
  const Tensor images = uniform(TensorSpec(Shape{batch, in[0], in[1], in[2]}, dtype, layout), 0, 1, 1);
  Tensor labels = uniform(TensorSpec(Shape{batch}, DType::kI64), 0, static_cast<double>(network.classes() - 1), 2);
  Generator generator(0);
  models::ForwardContext pass = models::ForwardContext::training(generator);
  std::optional<models::RoundedParameters> rounded;  // as a training step has them
  if (dtype == DType::kBf16) pass.rounded = &rounded.emplace(network);
  const SavedBuffers saved(network);
  const auto pass_once = [&] { return forward_backward(network, pass, images, labels); };
  // What a device takes op by op may be the host's time to launch them, in any layout.
  std::optional<Program> program;
  if (!network.device().is_cpu()) program = capture(pass_once);
  double best = kNever;
  for (int i = 0; i < 4 && !(i > 1 && best > kFarBehind * others); ++i) {
    for (const Tensor& w : network.trainable()) w.value->bump_version();  // as an optimizer does: forces new packs
    if (rounded) rounded->refresh();                                      // which a step's own update writes
    const double seconds = detail::seconds_of([&] {
      if (!program) return void(pass_once());
      program->run();
      program->outputs()[0].item();  // waits for the device
    });
    if (i > 0) best = std::min(best, seconds);  // the first run prepares kernels
  }
  return best;
}

// Its name is the user's choice: two networks may have one.
std::string described(const models::Network& network) {
  std::string parameters;
  for (const models::NamedTensor& p : network.parameters()) parameters += message("{} {} ", p.name, p.tensor.spec());
  return message("{} {} {}", network.name(), network.input(), std::hash<std::string>()(parameters));
}

bool is_gpu(Device device) { return !device.is_cpu() && runtime_of(device).properties().is_gpu(); }

}  // namespace

// cuDNN's kernels for strict f32 read NCHW, those for tensor cores NHWC; other layouts are converted inside the kernel.
Layout usual_layout(Device device, DType dtype) {
  const bool is_strict = dtype == DType::kF32 && detail::ctx.policy.math == MathMode::kStrict;
  return is_gpu(device) && is_strict ? Layout::kNchw : Layout::kNhwc;
}

Layout fastest_layout(const models::Network& network, DType dtype, int64_t batch) {
  const Device device = network.device();
  const std::string work =
      message("layout of {} batch {} {} on {} math {} threads {} search {} among {} of {} kernels within {} bytes",
              described(network), batch, dtype, device, static_cast<int>(detail::ctx.policy.math), threads(),
              static_cast<int>(detail::ctx.policy.search), algorithm_name(detail::ctx.policy.algorithm),
              detail::ctx.policy.kernels, workspace_limit(device));
  const auto is_layout = [](const std::string& name) {
    return std::ranges::any_of(kPublicLayouts, [&](Layout l) { return to_string(l) == name; });
  };
  if (const auto known = detail::find_tuned(device, work, is_layout)) return layout_from_string(*known);
  Layout best = usual_layout(device, dtype);
  double best_seconds = kNever;
  // A GPU's libraries have no kernels for chwn: each op would be that of another layout between two conversions, all of
  // whose plans would have to be measured once more.
  std::vector<Layout> layouts{Layout::kNhwc, Layout::kNchw};
  if (!is_gpu(device)) layouts.push_back(Layout::kChwn);
  std::ranges::stable_partition(layouts, [&](Layout l) { return l == best; });
  bool is_final = true;
  for (const Layout l : layouts) {
    double seconds = kNever;
    try {
      seconds = time_of_layout(network, l, dtype, batch, best_seconds);
    } catch (const Error&) {  // as where only another layout's step fits into the memory
      if (l == layouts.back() && best_seconds == kNever) throw;
      is_final = false;
    }
    detail::release_idle_memory(device);  // the next layout needs blocks of other sizes
    if (seconds < best_seconds) {
      best_seconds = seconds;
      best = l;
    }
  }
  if (is_final) detail::keep_tuned(device, work, to_string(best));
  return best;
}

}  // namespace plumb::training
