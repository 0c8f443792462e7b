// plumb train: trains a network and reports every epoch.
#include <fmt/core.h>

#include <cstdio>

#include "app/checkpoint.h"
#include "app/command.h"
#include "app/data_source.h"
#include "app/profile.h"
#include "app/report.h"
#include "app/trainer.h"
#include "kernels/choose.h"
#include "models/weights.h"

namespace plumb::app {
namespace {

using Json = nlohmann::ordered_json;

// What must be the same for a resumed run to continue bit for bit.
std::map<std::string, std::string> fixed_config(const TrainConfig& c) {
  const auto text = [](const std::optional<double>& v) { return v ? fmt::format("{}", *v) : std::string("default"); };
  return {{"model", c.model},
          {"optimizer", c.optimizer},
          {"convention", c.convention},
          {"dtype", c.dtype},
          {"batch", std::to_string(c.batch)},
          {"seed", std::to_string(c.seed)},
          {"limit", std::to_string(c.limit)},
          {"augment", c.augment ? "yes" : "no"},
          {"learning_rate", text(c.learning_rate)},
          {"momentum", text(c.momentum)},
          {"weight_decay", text(c.weight_decay)},
          {"algorithm", c.algorithm},
          {"threads", std::to_string(threads())}};
}

Json config_json(const TrainConfig& c, Layout layout) {
  Json j;
  for (const auto& [key, value] : fixed_config(c)) j[key] = value;
  j["data"] = c.data == "synthetic" ? "synthetic" : data_set_of(c.model);
  j["device"] = c.device;
  j["layout"] = to_string(layout);
  j["mode"] = c.mode;
  j["epochs"] = c.epochs;
  return j;
}

// The seven positional arguments of the coursework: device framework model epochs batch optimizer learning-rate.
void read_positional(const std::vector<std::string>& words, TrainConfig& c) {
  if (words.size() == 1) {
    c.model = words[0];
    return;
  }
  PLUMB_CHECK(words.size() == 7,
              "train: give a model, or the seven arguments DEVICE ref MODEL EPOCHS BATCH OPTIMIZER LEARNING_RATE; {} "
              "were given",
              words.size());
  PLUMB_CHECK(words[1] == "ref", "train: the framework \"{}\" is not this one; the second argument is ref here",
              words[1]);
  const auto number = [&](size_t i, auto convert) {
    try {
      size_t used = 0;
      const auto v = convert(words[i], &used);
      if (used == words[i].size()) return v;
    } catch (const std::exception&) {  // told below
    }
    fail("train: \"{}\" is not a number", words[i]);
  };
  c.device = words[0];
  c.model = words[2];
  c.epochs = number(3, [](const std::string& s, size_t* used) { return std::stoll(s, used); });
  c.batch = number(4, [](const std::string& s, size_t* used) { return std::stoll(s, used); });
  c.optimizer = words[5];
  c.learning_rate = number(6, [](const std::string& s, size_t* used) { return std::stod(s, used); });
}

class Report {
 public:
  Report(const TrainConfig& c, Layout layout) : config_(c) {
    json_["config"] = config_json(c, layout);
    json_["environment"] = environment_json();
    json_["steps_ms"] = Json::array();
    json_["epochs"] = Json::array();
    csv_ = "epoch,seconds,loss,train_accuracy,test_loss,test_accuracy\n";
  }
  void add_step(double ms) { json_["steps_ms"].push_back(ms); }
  void add_epoch(int64_t epoch, int64_t images, const EpochResult& r) {
    json_["epochs"].push_back({{"epoch", epoch + 1},
                               {"seconds", r.seconds},
                               {"loss", r.loss},
                               {"train_accuracy", r.train_accuracy},
                               {"test_loss", r.test_loss},
                               {"test_accuracy", r.test_accuracy}});
    csv_ += fmt::format("{},{},{},{},{},{}\n", epoch + 1, r.seconds, r.loss, r.train_accuracy, r.test_loss,
                        r.test_accuracy);
    fmt::print("epoch {:>3}/{}  {:8.2f} s  loss {:.4f}  training accuracy {:.4f}  test accuracy {:.4f}\n", epoch + 1,
               config_.epochs, r.seconds, r.loss, r.train_accuracy, r.test_accuracy);
    std::fflush(stdout);
    seconds_ += r.seconds;
    images_ += images;
    ++epochs_;
  }
  void finish() {
    const MemoryStats memory = cpu_memory().stats();
    json_["memory_bytes"] = memory_json(memory);
    if (epochs_ > 0) {
      json_["mean_epoch_seconds"] = seconds_ / static_cast<double>(epochs_);
      json_["images_per_second"] = static_cast<double>(images_) / seconds_;
      fmt::print("mean epoch time {:.2f} s, throughput {:.1f} images/s\n", seconds_ / static_cast<double>(epochs_),
                 static_cast<double>(images_) / seconds_);
    }
    fmt::print("memory at the peak:");
    for (int c = 0; c < kMemoryClassCount; ++c) {
      const auto bytes = memory.at_peak_bytes[static_cast<size_t>(c)];
      if (bytes) fmt::print(" {} {},", to_string(static_cast<MemoryClass>(c)), in_mb(static_cast<double>(bytes)));
    }
    fmt::print(" total {}\n", in_mb(static_cast<double>(memory.peak_total())));
    if (!config_.json.empty()) write_text(config_.json, json_.dump(1) + "\n");
    if (!config_.csv.empty()) write_text(config_.csv, csv_);
  }

 private:
  const TrainConfig& config_;
  Json json_;
  std::string csv_;
  double seconds_ = 0;
  int64_t images_ = 0, epochs_ = 0;
};

void check(const TrainConfig& c) {
  device_from_string(c.device);
  PLUMB_CHECK(c.batch >= 1, "train: a batch of {} images was asked for; use at least 1", c.batch);
  PLUMB_CHECK(c.epochs >= 1, "train: {} epochs were asked for; use at least 1", c.epochs);
  const DType dtype = dtype_from_string(c.dtype);
  PLUMB_CHECK(dtype == DType::kF32 || dtype == DType::kBf16, "train: dtype {} is not for training; use f32 or bf16",
              c.dtype);
  PLUMB_CHECK(!c.resume || !c.checkpoint.empty(), "train: --resume needs --checkpoint DIR to say where from");
  for (const std::string* file : {&c.json, &c.csv, &c.profile}) check_writable(*file);
}

void train(TrainConfig c) {
  check(c);
  if (c.model == "vgg") c.model = "vgg16";
  if (c.threads) set_threads(c.threads);
  const ChoiceScope choice(choice_of(c.algorithm));
  const DType dtype = dtype_from_string(c.dtype);
  auto network = models::make_network(c.model, c.seed, convention_from_string(c.convention));
  const data::TrainTest sets = load_for(c.model, c.data, c.limit);

  int64_t first_epoch = 0;
  Layout layout = Layout::kNhwc;
  if (c.resume) {
    const Checkpoint saved = peek_checkpoint(c.checkpoint);
    adopt_choices(saved.choices);
    layout = layout_from_string(saved.layout);
    PLUMB_CHECK(c.layout == "auto" || layout_from_string(c.layout) == layout,
                "train: the checkpoint was trained in layout {}, not {}", saved.layout, c.layout);
  } else {
    layout = c.layout == "auto" ? fastest_layout(*network, dtype, c.batch) : layout_from_string(c.layout);
  }

  Trainer trainer(c, layout, std::move(network), sets.train, sets.test);
  if (!c.init.empty()) models::load_weights(trainer.network(), c.init);
  if (c.resume) {
    first_epoch = load_checkpoint(c.checkpoint, trainer.state(), fixed_config(c)).epochs_done;
    PLUMB_CHECK(first_epoch < c.epochs, "train: the checkpoint has {} epochs done of {}; ask for more with --epochs",
                first_epoch, c.epochs);
  }
  fmt::print("{} ({} parameters) on {}, {} + {} images, batch {}, {}, layout {}{}, {}, {} thread{}\n", c.model,
             trainer.network().parameter_count(), sets.train.name, sets.train.size(), sets.test.size(), c.batch,
             c.optimizer, to_string(layout), c.layout == "auto" ? " (fastest measured)" : "", c.mode, threads(),
             threads() == 1 ? "" : "s");
  std::fflush(stdout);

  Profile profile;
  NanCheck nan_check;
  Observers observers;
  if (!c.profile.empty()) observers.add(&profile);
  if (c.check_nan) observers.add(&nan_check);
  const Scoped<Observer*> watch(ctx.observer, observers.empty() ? nullptr : &observers);
  cpu_memory().reset_peaks();

  Report report(c, layout);
  for (int64_t epoch = first_epoch; epoch < c.epochs; ++epoch) {
    ProgressBar bar(fmt::format("epoch {}", epoch + 1));
    const EpochResult r = trainer.run_epoch(epoch, [&](int64_t step, int64_t steps, double ms, const StepResult& s) {
      report.add_step(ms);
      if (!c.profile.empty()) profile.add_step(step, ms);
      bar.update(step + 1, steps, fmt::format("loss {:.4f} {:.0f} ms", s.loss, ms));
    });
    bar.clear();
    report.add_epoch(epoch, sets.train.size(), r);
    if (!c.checkpoint.empty()) {
      save_checkpoint(c.checkpoint, trainer.state(), {epoch + 1, fixed_config(c), choices_in_use(), to_string(layout)});
    }
  }
  report.finish();
  if (!c.profile.empty()) profile.write(c.profile);
}

}  // namespace

void add_train(CLI::App& app) {
  auto* cmd = app.add_subcommand("train", "Train a network and report time, loss and accuracy of every epoch");
  auto c = std::make_shared<TrainConfig>();
  auto words = std::make_shared<std::vector<std::string>>();
  cmd->add_option(
         "model", *words,
         "alexnet, vgg16 (or vgg), lenet, resnet20, resnet32, resnet44 or resnet56; or the seven arguments DEVICE ref "
         "MODEL EPOCHS BATCH OPTIMIZER LEARNING_RATE")
      ->required()
      ->expected(1, 7);
  cmd->add_option("--data", c->data,
                  "Folder of the data set (CIFAR-10, CIFAR-100 or MNIST, by the model), or synthetic")
      ->capture_default_str();
  cmd->add_option("--device", c->device, "cpu")->capture_default_str();
  cmd->add_option("--batch", c->batch, "Images a step")->capture_default_str();
  cmd->add_option("--optimizer", c->optimizer, "sgd, adam, adamw or rmsprop")->capture_default_str();
  cmd->add_option("--lr", c->learning_rate, "Learning rate [the convention's default]");
  cmd->add_option("--epochs", c->epochs, "Epochs in total, those of a resumed checkpoint included")
      ->capture_default_str();
  cmd->add_option("--momentum", c->momentum, "Momentum of sgd and rmsprop [0]");
  cmd->add_option("--weight-decay", c->weight_decay, "Weight decay [the convention's default]");
  cmd->add_option("--convention", c->convention,
                  "Whose formulas, defaults and initial weights: pytorch, keras or tensorflow1")
      ->capture_default_str();
  cmd->add_option("--layout", c->layout, "auto (the fastest measured), nchw, nhwc or chwn")->capture_default_str();
  cmd->add_option("--algorithm", c->algorithm, "measured, heuristic, direct, winograd or deterministic")
      ->capture_default_str();
  cmd->add_option("--dtype", c->dtype, "f32, or bf16 activations with f32 parameters")->capture_default_str();
  cmd->add_option("--mode", c->mode, "eager, or captured: the step is recorded once and replayed")
      ->capture_default_str();
  cmd->add_option("--threads", c->threads, "Threads of the kernels [all]");
  cmd->add_option("--seed", c->seed, "Seed of weights, order, augmentation and dropout")->capture_default_str();
  cmd->add_option("--limit", c->limit, "Use only the first so many images of each split [all]");
  cmd->add_flag("--augment", c->augment, "Random crops and flips of the training images");
  cmd->add_option("--init", c->init, "Start from these weights (safetensors)");
  cmd->add_option("--checkpoint", c->checkpoint, "Folder to save the state to after every epoch");
  cmd->add_flag("--resume", c->resume, "Continue from the checkpoint, bit for bit");
  cmd->add_option("--json", c->json, "Write the whole report to this file");
  cmd->add_option("--csv", c->csv, "Write one line an epoch to this file");
  cmd->add_option("--profile", c->profile, "Write a trace of every kernel for Chrome's trace viewer");
  cmd->add_flag("--check-nan", c->check_nan, "Stop at the first NaN and name the op that made it");
  cmd->callback([c, words] {
    read_positional(*words, *c);
    train(*c);
  });
}

}  // namespace plumb::app
