// plumb eval: the accuracy of given weights on a test set.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/data_source.h"
#include "dispatch/policy.h"
#include "measure/command/options.h"
#include "measure/command/report.h"
#include "models/weights.h"
#include "train/checkpoint.h"
#include "train/evaluation.h"

namespace plumb::app {
namespace {

struct EvalConfig {
  std::string model, weights, data, json;
  Layout layout = Layout::kNhwc;
  KernelChoice kernels;
  Device device;
  std::optional<Convention> convention;  // none: the checkpoint's, or PyTorch's
  datasets::Normalization normalization;
  int64_t batch = 250, limit = 0;
};

void check_channels(const char* option, const std::vector<double>& values, int64_t channels) {
  PLUMB_CHECK(static_cast<int64_t>(values.size()) == channels,
              "{} has {} values for images of {} channels; give one for each, with commas between", option,
              values.size(), channels);
}

datasets::Normalization normalization(const EvalConfig& c, int64_t channels) {
  const datasets::Normalization& n = c.normalization;
  PLUMB_CHECK(n.mean.empty() == n.deviation.empty(), "give both --mean and --std, or neither");
  if (n.mean.empty()) return normalization_of(c.model);
  check_channels("--mean", n.mean, channels);
  check_channels("--std", n.deviation, channels);
  return n;
}

void eval(const EvalConfig& c) {
  const std::string weights = training::weights_file(c.weights).string();
  check_outputs({{"--json", c.json}}, {{"--weights", weights}});
  check_device(c.device, c.kernels);
  const PolicyScope policy(policy_of(c.kernels));
  const DeviceScope on(c.device);
  const Convention formulas =
      c.convention ? *c.convention : training::convention_of(weights).value_or(Convention::kPyTorch);
  const auto network = models::make_network(c.model, 0, formulas);
  datasets::LoaderOptions options;
  options.batch = c.batch;
  options.shuffle = false;
  options.layout = c.layout;
  options.device = network->device();
  options.normalization = normalization(c, network->input()[0]);
  models::load_weights(*network, weights);
  const datasets::Dataset test = load_for(c.model, c.data, c.limit, datasets::Split::kTest);
  check_distinct({{"--json", c.json}}, files_of({&test}));
  datasets::Loader loader(test, options);
  const training::Evaluation e = training::evaluate(*network, loader);
  check_algorithm(c.kernels, c.model);
  const double loss = shown(e.loss);
  fmt::print("correct {} of {}\nloss {:.6f}\n", e.correct, e.total, loss);
  if (c.kernels.set != KernelSet::kAll) fmt::print("by {}\n", whose(c.kernels));
  if (!network->device().is_cpu()) fmt::print("on {}\n", where(network->device()));
  warn_of_loss(loss, "the loss", "look for NaN or too large numbers in the weights, or in --mean and --std");
  if (c.json.empty()) return;
  const nlohmann::ordered_json report{{"model", network->name()},
                                      {"convention", to_string(formulas)},
                                      {"algorithm", to_string(c.kernels)},
                                      {"kernels", to_string(c.kernels.set)},
                                      {"correct", e.correct},
                                      {"total", e.total},
                                      {"loss", loss},
                                      {"environment", environment_json(network->device())}};
  write_json(c.json, report);
}

}  // namespace

void add_eval(const CommandLine& plumb) {
  const CommandLine cmd = plumb.subcommand("eval", "Count the correct answers of given weights on a test set");
  auto c = std::make_shared<EvalConfig>();
  add_model_option(cmd, c->model);
  cmd.add("--weights", c->weights,
          {.text = "Weights by PyTorch's names: a file of safetensors, or a checkpoint of plumb train or its folder",
           .is_required = true});
  cmd.add("--data", c->data, {.text = "Folder of the data set, or synthetic", .is_required = true});
  const auto add_numbers = [&](const char* option, std::vector<double>& numbers, auto number, const char* about) {
    const auto take = [&numbers, number](const std::string& text) {
      refuse_empty(text);
      for (const std::string& part : between_commas(text)) numbers.push_back(number(part));
    };
    cmd.add(option, take, {about});
  };
  add_numbers("--mean", c->normalization.mean, finite_number,
              "Mean of each channel, after scaling to [0, 1] [resnets: 0.485,0.456,0.406]");
  add_numbers("--std", c->normalization.deviation, positive_number,
              "Deviation of each channel [resnets: 0.229,0.224,0.225]");
  add_choice(cmd, "--convention", c->convention, kConventions,
             {"Whose epsilon of batch normalization [the checkpoint's, or pytorch]: "});
  add_batch_option(cmd, c->batch, "Images at once");
  add_limit_option(cmd, c->limit, "Use only the first so many images, 0 for all");
  add_choice(cmd, "--layout", c->layout, kPublicLayouts, {"Of images and activations: "});
  add_device_option(cmd, c->device, "Where to run");
  add_kernel_options(cmd, c->kernels);
  add_workspace_option(cmd);
  add_threads_option(cmd);
  cmd.add("--json", c->json, {"Write the result to this file"});
  cmd.calls([c] { eval(*c); });
}

}  // namespace plumb::app
