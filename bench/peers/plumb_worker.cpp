// The Plumbline side of compare.py: training steps on demand (protocol.py says how).
#include <fmt/core.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/peak_memory.h"
#include "core/stopwatch.h"
#include "dispatch/policy.h"
#include "kernels/threads.h"
#include "measure/command/command_line.h"
#include "measure/command/options.h"
#include "measure/command/report.h"
#include "models/safetensors.h"
#include "models/weights.h"
#include "ops/convert.h"
#include "ops/slice.h"
#include "optim/make.h"
#include "train/fastest_layout.h"
#include "train/training_step.h"

namespace {

using namespace plumb;

struct Options {
  std::string model, weights, batch_file, optimizer = "sgd", layout = "auto", convention = "pytorch";
  command::KernelChoice kernels;
  training::StepMode mode = training::StepMode::kEager;
  training::Precision precision = training::Precision::kF32;
  double lr = 0.01;
  int64_t batch = 250;
  int threads = 2;
};

struct Batch {
  Tensor images, labels;
};

std::vector<Batch> read_batches(const Options& o, Layout layout, DType dtype) {
  const models::TensorFile file = models::load_safetensors(o.batch_file);
  const auto tensor = [&](std::string_view name) {
    for (const auto& t : file.tensors) {
      if (t.name == name) return t.tensor;
    }
    fail("{} has no tensor {}", o.batch_file, name);
  };
  const Tensor images = tensor("images"), labels = tensor("labels");
  std::vector<Batch> batches;
  for (int64_t i = 0; i + o.batch <= images.shape()[0]; i += o.batch) {
    const Tensor part = slice(images, Shape{i, 0, 0, 0}, images.shape().with(0, o.batch));
    batches.push_back({to(to(part, layout), dtype), slice(labels, Shape{i}, Shape{o.batch})});
  }
  PLUMB_CHECK(!batches.empty(), "{} has {} images, which are no batch of {}", o.batch_file, images.shape()[0], o.batch);
  return batches;
}

std::unique_ptr<optim::Optimizer> make_optimizer(const Options& o, const models::Network& network) {
  optim::Settings settings;
  settings.learning_rate = o.lr;
  settings.convention = convention_from_string(o.convention);
  return optim::make(o.optimizer, network.trainable(), settings);
}

// Trains a network on its batches in turn.
class Training {
 public:
  Training(const Options& o, const models::Network& network, std::vector<Batch> batches)
      : batches_(std::move(batches)),
        optimizer_(make_optimizer(o, network)),
        step_(network, *optimizer_, generator_, o.mode) {}

  // Returns the loss.
  double step() {
    const Batch& b = batches_[count_++ % batches_.size()];
    return step_(b.images, b.labels)[0].item();
  }

 private:
  std::vector<Batch> batches_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  Generator generator_{0};
  training::TrainingStep step_;
  size_t count_ = 0;
};

void say(const char* word, const nlohmann::json& what) {
  fmt::print("{} {}\n", word, what.dump());
  std::fflush(stdout);
}

void serve(const Options& o) {
  set_threads(o.threads);
  const PolicyScope policy(command::policy_of(o.kernels, o.precision));
  const DType dtype = activations_of(o.precision);
  const auto network = models::make_network(o.model, 0, convention_from_string(o.convention));
  models::load_weights(*network, o.weights);
  const Layout layout =
      o.layout == "auto" ? training::fastest_layout(*network, dtype, o.batch) : layout_from_string(o.layout);
  Training work(o, *network, read_batches(o, layout, dtype));

  double first_loss = 0;
  const double first_seconds = detail::seconds_of([&] { first_loss = work.step(); });
  say("ready", {{"framework", "Plumbline"},
                {"mode", message("{}/{}", o.kernels, o.mode)},
                {"layout", to_string(layout)},
                {"environment", command::environment_json()},
                {"first_step_ms", first_seconds * 1e3},
                {"first_loss", first_loss}});
  for (std::string word; std::cin >> word;) {
    int steps = 0;
    std::cin >> steps;
    std::vector<double> ms, losses;
    for (int i = 0; i < steps; ++i) {
      ms.push_back(1e3 * detail::seconds_of([&] { losses.push_back(work.step()); }));
    }
    say("steps", {{"ms", ms}, {"losses", losses}, {"peak_rss_bytes", bench::peak_rss_bytes()}});
  }
}

}  // namespace

int main(int argc, char** argv) {
  return command::run_program("plumb_bench_train", [&] {
    Options o;
    const command::CommandLine cli("Training steps on demand, for bench/peers/compare.py", "");
    cli.add("--model", o.model, {.is_required = true});
    cli.add("--weights", o.weights, {.is_required = true});
    cli.add("--batch-file", o.batch_file, {.is_required = true});
    command::add_batch_option(cli, o.batch, "");
    cli.add("--optimizer", o.optimizer, {});
    cli.add("--convention", o.convention, {});
    command::add_kernel_options(cli, o.kernels);
    command::add_choice(cli, "--mode", o.mode, training::kStepModes, {});
    cli.add("--layout", o.layout, {});
    command::add_dtype_option(cli, o.precision);
    command::add_nonnegative(cli, "--lr", o.lr, "");
    command::add_whole<int>(cli, "--threads", o.threads, "", 1);
    if (cli.parse(argc, argv)) serve(o);
    return 0;
  });
}
