// plumb eval: the accuracy of given weights on a test set.
#include <fmt/core.h>

#include "app/command.h"
#include "app/data_source.h"
#include "app/report.h"
#include "app/trainer.h"
#include "models/weights.h"

namespace plumb::app {
namespace {

struct EvalConfig {
  std::string model, weights, data, json, layout = "nhwc", algorithm = "measured";
  std::vector<double> mean, deviation;
  int64_t batch = 250, limit = 0;
  int threads = 0;
};

// The resnets' published weights expect ImageNet's normalisation; the others pixels in [0, 1].
data::Normalization normalization(const EvalConfig& c) {
  PLUMB_CHECK(c.mean.empty() == c.deviation.empty(), "eval: give both --mean and --std, or neither");
  if (!c.mean.empty()) return {c.mean, c.deviation};
  return c.model.starts_with("resnet") ? data::Normalization::imagenet() : data::Normalization{};
}

void eval(const EvalConfig& c) {
  check_writable(c.json);
  if (c.threads) set_threads(c.threads);
  const ChoiceScope choice(choice_of(c.algorithm));
  const auto network = models::make_network(c.model);
  models::load_weights(*network, c.weights);
  const data::Dataset test = load_for(c.model, c.data, c.limit).test;
  data::LoaderOptions options;
  options.batch = c.batch;
  options.shuffle = false;
  options.layout = layout_from_string(c.layout);
  options.normalization = normalization(c);
  data::Loader loader(test, options);
  const Evaluation e = evaluate(*network, loader);
  fmt::print("correct {} of {}\nloss {:.6f}\n", e.correct, e.total, e.loss);
  if (!c.json.empty()) {
    const nlohmann::ordered_json report{{"model", network->name()},
                                        {"correct", e.correct},
                                        {"total", e.total},
                                        {"loss", e.loss},
                                        {"environment", environment_json()}};
    write_text(c.json, report.dump(1) + "\n");
  }
}

}  // namespace

void add_eval(CLI::App& app) {
  auto* cmd = app.add_subcommand("eval", "Count the correct answers of given weights on a test set");
  auto c = std::make_shared<EvalConfig>();
  cmd->add_option("model", c->model, "alexnet, vgg16 (or vgg), lenet, resnet20, resnet32, resnet44 or resnet56")
      ->required();
  cmd->add_option("--weights", c->weights, "Weights by PyTorch's names (safetensors)")->required();
  cmd->add_option("--data", c->data, "Folder of the data set, or synthetic")->required();
  cmd->add_option("--mean", c->mean, "Mean of each channel, after scaling to [0, 1] [resnets: 0.485,0.456,0.406]")
      ->delimiter(',');
  cmd->add_option("--std", c->deviation, "Deviation of each channel [resnets: 0.229,0.224,0.225]")->delimiter(',');
  cmd->add_option("--batch", c->batch, "Images at once")->transform(as_whole<int64_t>())->capture_default_str();
  cmd->add_option("--limit", c->limit, "Use only the first so many images [all]")->transform(as_whole<int64_t>());
  cmd->add_option("--layout", c->layout, "nchw, nhwc or chwn")->capture_default_str();
  cmd->add_option("--algorithm", c->algorithm, "measured, heuristic, direct, winograd or deterministic")
      ->capture_default_str();
  cmd->add_option("--threads", c->threads, "Threads of the kernels [all]")->transform(as_whole<int>());
  cmd->add_option("--json", c->json, "Write the result to this file");
  cmd->callback([c] { eval(*c); });
}

}  // namespace plumb::app
