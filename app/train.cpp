// plumb train: trains a network and reports every epoch.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "app/checkpoint.h"
#include "app/command.h"
#include "app/data_source.h"
#include "app/profile.h"
#include "app/report.h"
#include "app/train_report.h"
#include "app/trainer.h"
#include "kernels/choose.h"
#include "models/weights.h"

namespace plumb::app {
namespace {

// The seven positional arguments of the coursework: device framework model epochs batch optimizer learning-rate.
void read_positional(const std::vector<std::string>& words, const CLI::App& cmd, TrainConfig& c) {
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
  for (const char* option : {"--device", "--epochs", "--batch", "--optimizer", "--lr"}) {
    PLUMB_CHECK(cmd.count(option) == 0, "train: the seven arguments already say what {} would; leave it out", option);
  }
  c.device = words[0];
  c.model = words[2];
  c.optimizer = words[5];
  try {
    c.epochs = whole_number<int64_t>(words[3]);
    c.batch = whole_number<int64_t>(words[4]);
  } catch (const Error& e) {
    fail("train: {}; the seven arguments are DEVICE ref MODEL EPOCHS BATCH OPTIMIZER LEARNING_RATE", e.what());
  }
  const std::string& rate = words[6];
  const auto [end, error] = std::from_chars(rate.data(), rate.data() + rate.size(), c.learning_rate.emplace());
  PLUMB_CHECK(error == std::errc() && end == rate.data() + rate.size(),
              "train: the learning rate \"{}\" is not a number", rate);
}

// Whatever can be told before there is any work.
void check(const TrainConfig& c) {
  device_from_string(c.device);
  PLUMB_CHECK(c.batch >= 1, "train: a batch of {} images was asked for; use at least 1", c.batch);
  PLUMB_CHECK(c.epochs >= 1, "train: {} epochs were asked for; use at least 1", c.epochs);
  training_dtype(c.dtype);
  is_captured(c.mode);
  if (c.layout != "auto") layout_from_string(c.layout);
  PLUMB_CHECK(!c.resume || !c.checkpoint.empty(), "train: --resume needs --checkpoint DIR to say where from");
  PLUMB_CHECK(!c.resume || c.init.empty(), "train: --resume takes the weights of the checkpoint; leave out --init");
  for (const std::string* file : {&c.json, &c.csv, &c.profile}) check_writable(*file);
  if (!c.checkpoint.empty()) check_folder_writable(c.checkpoint);
}

void train(TrainConfig c) {
  check(c);
  if (c.model == "vgg") c.model = "vgg16";
  if (c.threads) set_threads(c.threads);
  const ChoiceScope choice(choice_of(c.algorithm));
  auto network = models::make_network(c.model, c.seed, convention_from_string(c.convention));
  if (!c.init.empty()) models::load_weights(*network, c.init);
  auto optimizer = make_optimizer(c, *network);
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
    const int64_t batch = std::min(c.batch, sets.train.size());
    layout =
        c.layout == "auto" ? fastest_layout(*network, training_dtype(c.dtype), batch) : layout_from_string(c.layout);
  }

  Trainer trainer(c, layout, std::move(network), std::move(optimizer), sets.train, sets.test);
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

  TrainReport report(c, layout);
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
      ->required();
  cmd->add_option("--data", c->data,
                  "Folder of the data set (CIFAR-10, CIFAR-100 or MNIST, by the model), or synthetic")
      ->capture_default_str();
  cmd->add_option("--device", c->device, "cpu")->capture_default_str();
  cmd->add_option("--batch", c->batch, "Images a step")->transform(as_whole<int64_t>())->capture_default_str();
  cmd->add_option("--optimizer", c->optimizer, "sgd, adam, adamw or rmsprop")->capture_default_str();
  cmd->add_option("--lr", c->learning_rate, "Learning rate [the convention's default]");
  cmd->add_option("--epochs", c->epochs, "Epochs in total, those of a resumed checkpoint included")
      ->transform(as_whole<int64_t>())
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
  cmd->add_option("--threads", c->threads, "Threads of the kernels [all]")->transform(as_whole<int>());
  cmd->add_option("--seed", c->seed, "Seed of weights, order, augmentation and dropout")
      ->transform(as_whole<uint64_t>())
      ->capture_default_str();
  cmd->add_option("--limit", c->limit, "Use only the first so many images of each split [all]")
      ->transform(as_whole<int64_t>());
  cmd->add_flag("--augment", c->augment, "Random crops and flips of the training images");
  cmd->add_option("--init", c->init, "Start from these weights (safetensors)");
  cmd->add_option("--checkpoint", c->checkpoint, "Folder to save the state to after every epoch");
  cmd->add_flag("--resume", c->resume, "Continue from the checkpoint, bit for bit");
  cmd->add_option("--json", c->json, "Write the whole report to this file");
  cmd->add_option("--csv", c->csv, "Write one line an epoch to this file");
  cmd->add_option("--profile", c->profile, "Write a trace of every kernel for Chrome's trace viewer");
  cmd->add_flag("--check-nan", c->check_nan, "Stop at the first NaN and name the op that made it");
  cmd->callback([c, words, cmd] {
    read_positional(*words, *cmd, *c);
    train(*c);
  });
}

}  // namespace plumb::app
