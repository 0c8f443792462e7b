#include "app/plan_step.h"

#include <utility>

#include "app/device_description.h"
#include "app/planning_driver.h"
#include "core/described.h"
#include "core/error.h"
#include "core/runtime.h"
#include "core/stopwatch.h"
#include "dispatch/kernel_cache.h"
#include "dispatch/machine.h"
#include "dispatch/policy.h"
#include "optim/make.h"
#include "train/training_step.h"

namespace plumb::app {

namespace {

std::string extents(const Shape& s) {
  std::string text;
  for (const int64_t e : s) text += (text.empty() ? "" : "x") + std::to_string(e);
  return text.empty() ? "scalar" : text;
}

std::string shapes_of(const PreparedKernel& p) {
  const std::string_view kind = p.kind->name;
  if (p.in().empty()) return extents(p.out()[0].shape);
  std::string text = extents(p.in()[0].shape);
  if (kind.starts_with("conv2d") || kind.starts_with("linear") || kind == "matmul") {
    text += " " + extents(p.in()[1].shape);
  }
  return text;
}

// The operands of a convolution whose bytes together are the workspace, but for a little.
std::string copies_in(const PreparedKernel& p) {
  const std::string_view kind = p.kind->name;
  const char* const names = kind == "conv2d_forward" ? "xwy" : kind == "conv2d_backward_input" ? "ywx" : "yxw";
  const size_t bytes[] = {p.in()[0].bytes(), p.in()[1].bytes(), p.out()[0].bytes()};
  for (unsigned subset = 1; subset < 8; ++subset) {
    size_t sum = 0;
    std::string text;
    for (unsigned i = 0; i < 3; ++i) {
      if ((subset >> i & 1) == 0) continue;
      sum += bytes[i];
      text += (text.empty() ? "" : " ") + std::string(1, names[i]);
    }
    const size_t workspace = p.kernel->info().workspace_bytes;
    if (workspace >= sum && workspace - sum <= 1024 + sum / 100) return text;
  }
  return "";
}

PlannedKernel row_of(const PreparedKernel& p, const measure::DeviceRoofs& roofs, MathMode math) {
  PlannedKernel k;
  static_cast<KernelInfo&>(k) = p.kernel->info();
  k.kind = p.kind->name;
  k.shapes = shapes_of(p);
  if (!p.out().empty()) k.output = extents(p.out()[0].shape);
  k.in.assign(p.in().begin(), p.in().end());
  k.parameters = p.params;
  const DType dtype = p.in().empty() ? p.out()[0].dtype : p.in()[0].dtype;
  k.floor_seconds = roofs.floor(k.bytes, k.flops, dtype, math);
  const auto is_of = [&](const char* kind) { return k.kind.starts_with(kind); };
  const bool is_cudnns = is_of("conv2d") || is_of("max_pool2d") || is_of("avg_pool2d") || is_of("batch_norm");
  k.is_without_plan = is_cudnns && !k.is_offered_by_vendor;
  if (is_of("conv2d") && k.provider == Provider::kCudnn) k.inferred_copies = copies_in(p);
  return k;
}

}  // namespace

std::string flags_of(const PlannedKernel& k) {
  std::string flags;
  for (const auto& [note, letter] : {std::pair{"nondeterministic", 'N'},
                                     {"tensor_core", 'T'},
                                     {"runtime_compiled", 'R'},
                                     {"winograd", 'W'},
                                     {"only_a_device_tells", 'D'}}) {
    if (k.notes.find(note) != std::string::npos) flags += letter;
  }
  return flags;
}

std::vector<Layout> layouts_of(const PlanConfig& c) {
  if (!c.layout) return {Layout::kNchw, Layout::kNhwc};
  return {*c.layout};
}

Planning planning_on(const std::string& on, const char* command) {
  const std::string description = device_description(on);
  const auto [device, roofs] = [&] {
    try {
      const Device described = describe_device(description);
      return std::pair(described, roofs_of(description));
    } catch (const Error& e) {
      fail("--on {}: {}", on, e.what());
    }
  }();
  const char* const driver = open_planning_driver();
  const std::vector<std::string> libraries = device_library_versions(device);
  PLUMB_CHECK(!libraries.empty(),
              "{}: this program was built without cuDNN; build preset cuda (scripts/setup --cuda brings the toolkit)",
              command);
  return {device, driver, roofs, libraries};
}

PlannedStep plan_step(const PlanConfig& c, Layout layout, Device device, const measure::DeviceRoofs& roofs) {
  const detail::Stopwatch watch;
  PlannedStep step;
  step.layout = layout;
  const DeviceScope on(device);
  Policy policy = policy_of(c.kernels, c.precision);
  if (policy.search == Search::kMeasured) policy.search = Search::kHeuristic;  // there is nothing to measure on
  const PolicyScope chosen(policy);
  memory_of(device).reset_peaks();
  const auto network = models::make_network(c.model);
  const auto optimizer = optim::make(c.optimizer, network->trainable(), {});
  Generator generator(0);
  const Shape& in = network->input();
  const DType dtype = activations_of(c.precision);
  const Tensor images =
      Tensor::empty(TensorSpec(Shape{c.batch, in[0], in[1], in[2]}, dtype, layout), MemoryClass::kInput, device);
  const Tensor labels = Tensor::empty(TensorSpec(Shape{c.batch}, DType::kI64), MemoryClass::kInput, device);
  training::TrainingStep of_network(*network, *optimizer, generator, training::StepMode::kCaptured);
  const Program program = of_network.program(images, labels);
  for (const PreparedKernel* p : program.kernels()) {
    step.kernels.push_back(row_of(*p, roofs, policy.math));
    step.launches += step.kernels.back().launches;
  }
  step.program = program.stats();
  step.memory = memory_of(device).stats();
  step.seconds = watch.seconds();
  return step;
}

}  // namespace plumb::app
