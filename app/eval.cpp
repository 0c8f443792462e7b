// plumb eval: the accuracy of given weights on a test set.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "app/checkpoint.h"
#include "app/command.h"
#include "app/data_source.h"
#include "app/evaluation.h"
#include "app/options.h"
#include "app/report.h"
#include "dispatch/policy.h"
#include "models/weights.h"

namespace plumb::app {
namespace {

struct EvalConfig {
  std::string model, weights, data, json, layout = "nhwc", algorithm = "measured", device = "cpu";
  std::string convention;       // empty: the checkpoint's, or PyTorch's
  std::string mean, deviation;  // numbers between commas
  int64_t batch = 250, limit = 0;
};

std::vector<double> of_channels(const char* option, const std::string& text, int64_t channels) {
  std::vector<double> all;
  try {
    all = finite_numbers(text);
  } catch (const Error& e) {
    fail("{}: {}", option, e.what());
  }
  PLUMB_CHECK(static_cast<int64_t>(all.size()) == channels,
              "{} has {} values for images of {} channels; give one for each, with commas between", option, all.size(),
              channels);
  return all;
}

datasets::Normalization normalization(const EvalConfig& c, int64_t channels) {
  PLUMB_CHECK(c.mean.empty() == c.deviation.empty(), "give both --mean and --std, or neither");
  if (c.mean.empty()) return normalization_of(c.model);
  datasets::Normalization n{of_channels("--mean", c.mean, channels), of_channels("--std", c.deviation, channels)};
  for (const double d : n.deviation) PLUMB_CHECK(d > 0, "--std: {} is too small; deviations are above 0", d);
  return n;
}

Convention convention(const EvalConfig& c, const std::string& weights) {
  if (!c.convention.empty()) return convention_from_string(c.convention);
  return convention_of(weights).value_or(Convention::kPyTorch);
}

void eval(const EvalConfig& c) {
  const std::string weights = weights_file(c.weights).string();
  check_outputs({{"--json", c.json}}, {{"--weights", weights}});
  check_algorithm(c.algorithm, device_from_string(c.device));
  const PolicyScope policy(choice_of(c.algorithm));
  const DeviceScope on(device_from_string(c.device));
  const Convention formulas = convention(c, weights);
  const auto network = models::make_network(c.model, 0, formulas);
  datasets::LoaderOptions options;
  options.batch = c.batch;
  options.shuffle = false;
  options.layout = layout_from_string(c.layout);
  options.device = network->device();
  options.normalization = normalization(c, network->input()[0]);
  models::load_weights(*network, weights);
  const datasets::Dataset test = load_for(c.model, c.data, c.limit).test;
  check_distinct({{"--json", c.json}}, files_of({&test}));
  datasets::Loader loader(test, options);
  const Evaluation e = evaluate(*network, loader);
  check_engine(c.algorithm, c.model);
  const double loss = shown(e.loss);
  fmt::print("correct {} of {}\nloss {:.6f}\n", e.correct, e.total, loss);
  if (!network->device().is_cpu()) fmt::print("on {}\n", where(network->device()));
  warn_of_loss(loss, "the loss", "look for NaN or too large numbers in the weights, or in --mean and --std");
  if (c.json.empty()) return;
  const nlohmann::ordered_json report{{"model", network->name()},
                                      {"convention", to_string(formulas)},
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
          "Weights by PyTorch's names: a file of safetensors, or a checkpoint of plumb train or its folder")
      .required();
  cmd.add("--data", c->data, "Folder of the data set, or synthetic").required();
  cmd.add("--mean", c->mean, "Mean of each channel, after scaling to [0, 1] [resnets: 0.485,0.456,0.406]");
  cmd.add("--std", c->deviation, "Deviation of each channel [resnets: 0.229,0.224,0.225]");
  add_choice(cmd, "--convention", c->convention, convention_choices(),
             "Whose epsilon of batch normalization [the checkpoint's, or pytorch]: ");
  add_batch_option(cmd, c->batch, "Images at once");
  add_limit_option(cmd, c->limit, "Use only the first so many images, 0 for all");
  add_choice(cmd, "--layout", c->layout, layout_choices(), "Of images and activations: ");
  add_device_option(cmd, c->device, "Where to run");
  add_algorithm_option(cmd, c->algorithm);
  add_workspace_option(cmd);
  add_threads_option(cmd);
  cmd.add("--json", c->json, "Write the result to this file");
  cmd.calls([c] { eval(*c); });
}

}  // namespace plumb::app
