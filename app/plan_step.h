// A training step as it would run on a device that is only described: every kernel of it, and the floor under its time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/context.h"
#include "core/layout.h"
#include "core/memory.h"
#include "core/spec.h"
#include "dispatch/kernel.h"
#include "graph/program.h"
#include "measure/command/values.h"
#include "measure/device_roofs.h"
#include "optim/make.h"

namespace plumb::app {

using namespace command;

/// One kernel of a step.
struct PlannedKernel : KernelInfo {
  std::string kind, shapes;  ///< "conv2d_forward", "250x64x32x32 w 128x64x3x3"
  std::string output;        ///< "250x128x32x32"; empty if it writes into its inputs
  std::vector<TensorSpec> in;
  std::vector<uint64_t> parameters;  ///< the words of them: strides, padding, ...
  double floor_seconds = 0;
  /// The operands that are copied into another layout inside of it, which the vendor's library does not tell: those
  /// whose bytes together are its workspace. "x y", "w", or nothing.
  std::string inferred_copies;
  bool is_without_plan = false;  ///< a convolution, pooling or batch norm for which the vendor's library has none
};

/// What is to be known of a kernel at one look, in letters.
std::string flags_of(const PlannedKernel& k);
inline constexpr const char* kFlags =
    "N: nondeterministic; T: tensor cores; R: compiled at run time; W: Winograd; D: which algorithm only a device "
    "tells";

/// A step in one layout.
struct PlannedStep {
  Layout layout = Layout::kNchw;
  std::vector<PlannedKernel> kernels;
  ProgramStats program;
  MemoryStats memory;
  int launches = 0;
  double seconds = 0;  ///< that planning took
};

struct PlanConfig {
  std::string model{}, on{}, json{};
  std::optional<Layout> layout{};  ///< of the images; nothing: in nchw and in nhwc
  training::Precision precision = training::Precision::kF32;
  KernelChoice kernels{Search::kHeuristic};
  optim::Kind optimizer = optim::Kind::kSgd;
  int64_t batch = 250;
};
std::vector<Layout> layouts_of(const PlanConfig& c);

/// A GPU that is only described, and what its plans are made by.
struct Planning {
  Device device;
  const char* driver;  ///< whose (open_planning_driver)
  measure::DeviceRoofs roofs;
  std::vector<std::string> libraries;
};
/// `on` names or describes it. Throws where this program has no cuDNN, in a sentence that begins with the command.
Planning planning_on(const std::string& on, const char* command);

/// Captures a step of training on the device: forward, loss, gradients, update.
PlannedStep plan_step(const PlanConfig& c, Layout layout, Device device, const measure::DeviceRoofs& roofs);

}  // namespace plumb::app
