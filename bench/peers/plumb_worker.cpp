// The Plumbline side of compare.py: training steps on demand (protocol.py says how).
#include <fmt/core.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/fastest_layout.h"
#include "app/options.h"
#include "app/report.h"
#include "app/trainer.h"
#include "core/stopwatch.h"
#include "graph/program.h"
#include "models/safetensors.h"
#include "models/weights.h"
#include "ops/convert.h"
#include "ops/slice.h"
#include "optim/make.h"

namespace {

using namespace plumb;

struct Options {
  std::string model, weights, batch_file, optimizer = "sgd", algorithm = "measured", mode = "eager", layout = "auto",
                                          dtype = "f32", convention = "pytorch";
  double lr = 0.01;
  int64_t batch = 250;
  int threads = 2;
};

void serve(const Options& o) {
  set_threads(o.threads);
  const ChoiceScope choice(app::choice_of(o.algorithm));
  const DType dtype = dtype_from_string(o.dtype);
  const auto network = models::make_network(o.model, 0, convention_from_string(o.convention));
  models::load_weights(*network, o.weights);
  const Layout layout =
      o.layout == "auto" ? app::fastest_layout(*network, dtype, o.batch) : layout_from_string(o.layout);
  std::vector<Tensor> images, labels;
  {
    const models::TensorFile file = models::load_safetensors(o.batch_file);
    const auto tensor = [&](std::string_view name) {
      for (const auto& t : file.tensors) {
        if (t.name == name) return t.tensor;
      }
      fail("{} has no tensor {}", o.batch_file, name);
    };
    const Tensor all = tensor("images"), classes = tensor("labels");
    for (int64_t i = 0; i + o.batch <= all.shape()[0]; i += o.batch) {
      images.push_back(to(to(slice(all, Shape{i, 0, 0, 0}, all.shape().with(0, o.batch)), layout), dtype));
      labels.push_back(slice(classes, Shape{i}, Shape{o.batch}));
    }
  }
  optim::Settings settings;
  settings.learning_rate = o.lr;
  settings.convention = convention_from_string(o.convention);
  const auto optimizer = optim::make(o.optimizer, network->trainable(), settings);
  Generator generator(0);
  const auto train = [&](const Tensor& x, const Tensor& y) {
    TensorList result = app::forward_backward(*network, models::Pass::training(generator), x, y);
    optimizer->step(std::span<const Tensor>(result).subspan(2));
    result.resize(1);
    return result;
  };
  StaticFunction captured([&](std::span<const Tensor> in) { return train(in[0], in[1]); });
  size_t count = 0;
  const auto step = [&] {
    const size_t i = count++ % images.size();
    return o.mode == "captured" ? captured({images[i], labels[i]})[0].item() : train(images[i], labels[i])[0].item();
  };

  double first_loss = 0;
  const double first_seconds = seconds_of([&] { first_loss = step(); });
  nlohmann::json ready{{"framework", "Plumbline"},
                       {"mode", o.algorithm + "/" + o.mode},
                       {"layout", to_string(layout)},
                       {"environment", app::environment_json()},
                       {"first_step_ms", first_seconds * 1e3},
                       {"first_loss", first_loss}};
  fmt::print("ready {}\n", ready.dump());
  std::fflush(stdout);
  for (std::string word; std::cin >> word;) {
    int steps = 0;
    std::cin >> steps;
    std::vector<double> ms, losses;
    for (int i = 0; i < steps; ++i) {
      ms.push_back(1e3 * seconds_of([&] { losses.push_back(step()); }));
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const nlohmann::json report{{"ms", ms}, {"losses", losses}, {"peak_rss_bytes", usage.ru_maxrss * 1024}};
    fmt::print("steps {}\n", report.dump());
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return app::run_program("plumb_bench_train", [&] {
    Options o;
    CLI::App cli("Training steps on demand, for bench/peers/compare.py");
    cli.add_option("--model", o.model)->required();
    cli.add_option("--weights", o.weights)->required();
    cli.add_option("--batch-file", o.batch_file)->required();
    app::add_batch_option(cli, o.batch, "");
    cli.add_option("--optimizer", o.optimizer);
    cli.add_option("--convention", o.convention);
    app::add_algorithm_option(cli, o.algorithm);
    app::add_choice(cli, "--mode", o.mode, {"eager", "captured"}, "");
    cli.add_option("--layout", o.layout);
    app::add_dtype_option(cli, o.dtype);
    cli.add_option("--lr", o.lr)->transform(app::nonnegative());
    cli.add_option("--threads", o.threads)->transform(app::whole_from<int>(1));
    if (app::parse(cli, argc, argv)) serve(o);
    return 0;
  });
}
