// plumb layout: every layer of a network in every direction and layout, in turn, beside oneDNN with all formats left to
// it.
#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "app/command.h"
#include "app/layout_report.h"
#include "dispatch/policy.h"
#include "measure/command/options.h"
#include "measure/command/report.h"
#include "models/rounded.h"
#include "ops/random.h"
#include "train/training_step.h"

namespace plumb::app {
namespace {

using Json = nlohmann::ordered_json;

struct LayoutConfig {
  std::string model, json;
  KernelChoice kernels;
  training::Precision precision = training::Precision::kF32;
  Device device;
  int64_t batch = 250;
};

Program training_step(const models::Network& network, Layout layout, const LayoutConfig& c) {
  const Shape& in = network.input();
  const TensorSpec spec(Shape{c.batch, in[0], in[1], in[2]}, activations_of(c.precision), layout);
  const Tensor images = uniform(spec, 0, 1, 1);
  const Tensor labels =
      uniform(TensorSpec(Shape{c.batch}, DType::kI64), 0, static_cast<double>(network.classes() - 1), 2);
  Generator generator(0);
  models::ForwardContext pass = models::ForwardContext::training(generator);
  std::optional<models::RoundedParameters> rounded;  // as a training step has them
  if (images.dtype() == DType::kBf16) pass.rounded = &rounded.emplace(network);
  return capture([&] { return training::forward_backward(network, pass, images, labels); });
}

std::vector<measure::LayoutPieces> steps_of(const models::Network& network, const LayoutConfig& c) {
  std::vector<measure::LayoutPieces> steps;
  for (const Layout l : kPublicLayouts) {
    steps.push_back({l, measure::pieces_of(training_step(network, l, c), network)});
  }
  check_algorithm(c.kernels, c.model);
  return steps;
}

void layout(const LayoutConfig& c) {
  check_outputs({{"--json", c.json}});
  check_device(c.device, c.kernels, c.precision);
  const PolicyScope policy(policy_of(c.kernels, c.precision));
  const DeviceScope on(c.device);
  const auto network = models::make_network(c.model);
  ProgressBar bar("layers");
  const auto rows =
      measure::rows_of(steps_of(*network, c), [&](int64_t done, int64_t all) { bar.update(done, all, ""); });
  bar.clear();
  const auto totals = totals_of(rows);
  const LayoutVerdict verdict = verdict_of(totals);
  fmt::print("{}, forward and backward, batch {}, {}, {}, {}\n", network->name(), c.batch, to_string(c.precision),
             whose(c.kernels), where(c.device));
  fmt::print("{}\n", verdict.text);
  print_totals(totals);
  print_rows(rows);
  if (c.json.empty()) return;
  Json report{{"model", network->name()},
              {"batch", c.batch},
              {"dtype", to_string(c.precision)},
              {"algorithm", to_string(c.kernels)},
              {"kernels", to_string(c.kernels.set)},
              {"environment", environment_json(network->device())}};
  report["verdict"] = {{"fastest", to_string(verdict.fastest)}, {"is_clear", verdict.is_clear}, {"text", verdict.text}};
  report["rows"] = Json::array();
  for (const measure::LayoutRow& r : rows) report["rows"].push_back(row_json(r));
  report["totals"] = totals_json(totals);
  write_json(c.json, report);
}

}  // namespace

void add_layout(const CommandLine& plumb) {
  const CommandLine cmd =
      plumb.subcommand("layout", "Time every layer, direction and layout of a network, conversions included");
  auto c = std::make_shared<LayoutConfig>();
  add_model_option(cmd, c->model);
  add_batch_option(cmd, c->batch, "Images at once");
  add_dtype_option(cmd, c->precision);
  add_device_option(cmd, c->device, "Where to run");
  add_kernel_options(cmd, c->kernels);
  add_workspace_option(cmd);
  add_threads_option(cmd);
  cmd.add("--json", c->json, {"Write the same to this file"});
  cmd.calls([c] { layout(*c); });
}

}  // namespace plumb::app
