// plumb train: trains a network and reports every epoch.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/checkpoint.h"
#include "app/command.h"
#include "app/data_source.h"
#include "app/fastest_layout.h"
#include "app/options.h"
#include "app/profile.h"
#include "app/report.h"
#include "app/train_report.h"
#include "app/trainer.h"
#include "dispatch/policy.h"
#include "dispatch/tuning_cache.h"
#include "models/weights.h"

namespace plumb::app {
namespace {

constexpr const char* kSeven = "DEVICE FRAMEWORK MODEL EPOCHS BATCH OPTIMIZER LEARNING_RATE";

const std::vector<std::string>& optimizers() {
  static const std::vector<std::string> names{"sgd", "adam", "adamw", "rmsprop"};
  return names;
}

// What scripts that drive several frameworks alike give: seven arguments in a row. This framework is "ref".
void read_seven(const std::vector<std::string>& words, TrainConfig& c) {
  const auto read = [](const char* what, const auto& value) {
    try {
      return value();
    } catch (const Error& e) {
      fail("{}: {}", what, e.what());
    }
  };
  const auto choice = [&](const char* what, const std::string& word, const std::vector<std::string>& names) {
    return read(what, [&] { return check_choice(word, names), word; });
  };
  c.device = read("DEVICE", [&] { return to_string(device_from_string(words[0])); });
  choice("FRAMEWORK", words[1], {"ref"});
  c.model = choice("MODEL", words[2], model_choices());
  c.epochs = read("EPOCHS", [&] { return whole_number<int64_t>(words[3], 1); });
  c.batch = read("BATCH", [&] { return batch_size(words[4]); });
  c.optimizer = choice("OPTIMIZER", words[5], optimizers());
  c.learning_rate = read("LEARNING_RATE", [&] { return nonnegative_number(words[6]); });
}

void read_positional(const std::vector<std::string>& words, const CommandLine& cmd, TrainConfig& c) {
  if (words.size() == 1) {
    check_choice(words[0], model_choices());
    c.model = words[0];
    return;
  }
  PLUMB_CHECK(words.size() == 7, "give a model alone, or the seven arguments {}; {} were given", kSeven, words.size());
  for (const char* option : {"--device", "--epochs", "--batch", "--optimizer", "--lr"}) {
    PLUMB_CHECK(!cmd.has(option), "the seven arguments {} already say what {} would; leave it out", kSeven, option);
  }
  read_seven(words, c);
}

std::vector<NamedFile> outputs_of(const TrainConfig& c) {
  return {{"--json", c.json}, {"--csv", c.csv}, {"--profile", c.profile}};
}

// Whatever can be told before there is any work.
void check(const TrainConfig& c) {
  PLUMB_CHECK(!c.resume || !c.checkpoint.empty(), "--resume needs --checkpoint DIR to say where from");
  PLUMB_CHECK(!c.resume || c.init.empty(), "--resume takes the weights of the checkpoint; leave out --init");
  const std::string state = c.checkpoint.empty() ? "" : checkpoint_file(c.checkpoint).string();
  const std::string init = c.init.empty() ? "" : weights_file(c.init).string();
  if (!c.checkpoint.empty()) check_checkpoint_folder(c.checkpoint);
  check_outputs(outputs_of(c), {{"--init", init}, {"--checkpoint", state}});
  PLUMB_CHECK(init.empty() || state.empty() || !is_same_file(init, state),
              "--init and --checkpoint name the same file {}; give --checkpoint another folder", init);
}

// A checkpoint may come from anywhere, and what is wrong in its optimizer would only show as nonsense.
void check_optimizer(Trainer& trainer, const std::string& file, int64_t epochs) {
  const double rate = trainer.optimizer().learning_rate().item();
  PLUMB_CHECK(rate >= 0 && std::isfinite(rate),
              "{} is not a valid checkpoint: its learning rate is {}; start anew without --resume", file, rate);
  const int64_t steps = trainer.optimizer().steps();
  PLUMB_CHECK(
      steps % trainer.steps() == 0 && steps / trainer.steps() == epochs,
      "{} is not a checkpoint of this run: it has {} steps done in {} epochs, where an epoch has {}; start anew "
      "without --resume",
      file, steps, epochs, trainer.steps());
}

// Every reason why a checkpoint cannot be resumed ends with the way out.
template <class Read>
Checkpoint resuming(const Read& read) {
  try {
    return read();
  } catch (const Error& e) {
    const std::string why = e.what();
    fail("{}{}", why, why.ends_with("without --resume") ? "" : "; start anew without --resume");
  }
}

// The layout of a run, and who chose it where the user did not.
struct ChosenLayout {
  Layout layout;
  const char* by = "";
};

ChosenLayout layout_of(const TrainConfig& c, const std::optional<Checkpoint>& resumed, const models::Network& network,
                       int64_t images) {
  const bool is_auto = c.layout == "auto";
  if (resumed) {
    const Layout layout = layout_from_string(resumed->layout);
    PLUMB_CHECK(is_auto || layout_from_string(c.layout) == layout,
                "the checkpoint {} was made with --layout {}, not --layout {}; give --layout {}, or start anew without "
                "--resume",
                checkpoint_file(c.checkpoint).string(), resumed->layout, c.layout, resumed->layout);
    return {layout, is_auto ? " (the checkpoint's)" : ""};
  }
  if (!is_auto) return {layout_from_string(c.layout)};
  const DType dtype = precision_of(c.dtype).activations;
  if (c.algorithm == "deterministic") return {usual_layout(network.device(), dtype)};  // the clock must not decide
  return {fastest_layout(network, dtype, std::min(c.batch, images)), " (fastest measured)"};
}

void train(TrainConfig c) {
  check(c);
  if (c.model == "vgg") c.model = "vgg16";
  check_precision(c.dtype, device_from_string(c.device));
  check_algorithm(c.algorithm, device_from_string(c.device));
  const PolicyScope policy(choice_of(c.algorithm, c.dtype));
  const DeviceScope on(device_from_string(c.device));
  auto network = models::make_network(c.model, c.seed, convention_from_string(c.convention));
  if (!c.init.empty()) models::load_weights(*network, weights_file(c.init));
  auto optimizer = make_optimizer(c, *network);
  const datasets::TrainTest sets = load_for(c.model, c.data, c.limit);
  check_distinct(outputs_of(c), files_of({&sets.train, &sets.test}));

  std::optional<Checkpoint> resumed;
  if (c.resume) {
    resumed = resuming([&] { return peek_checkpoint(c.checkpoint); });
    adopt_tuning(resumed->choices);
  }
  const auto [layout, by] = layout_of(c, resumed, *network, sets.train.size());

  const Device network_device = network->device();
  int64_t first_epoch = 0;
  Trainer trainer(c, layout, std::move(network), std::move(optimizer), sets.train, sets.test);
  if (c.resume) {
    const std::string file = checkpoint_file(c.checkpoint).string();
    first_epoch = resuming([&] { return load_checkpoint(c.checkpoint, trainer.state(), fixed_config(c)); }).epochs_done;
    PLUMB_CHECK(first_epoch < c.epochs, "the checkpoint {} has {} epochs done of {}; ask for more with --epochs", file,
                first_epoch, c.epochs);
    check_optimizer(trainer, file, first_epoch);
  }
  fmt::print("{} ({} parameters) on {}, {} + {} images, batch {}, {}, layout {}{}, {}, {}\n", c.model,
             trainer.network().parameter_count(), sets.train.name, sets.train.size(), sets.test.size(), c.batch,
             c.optimizer, to_string(layout), by, c.mode, where(network_device));
  std::fflush(stdout);

  Profile profile;
  NanCheck nan_check;
  Observers observers;
  if (!c.profile.empty()) observers.add(&profile);
  if (c.check_nan) observers.add(&nan_check);
  const ObserverScope watch(observers.empty() ? nullptr : &observers);
  memory_of(network_device).reset_peaks();

  TrainReport report(c, layout);
  for (int64_t epoch = first_epoch; epoch < c.epochs; ++epoch) {
    ProgressBar bar(fmt::format("epoch {}", epoch + 1));
    report.begin_epoch();
    const EpochResult r = trainer.run_epoch(epoch, [&](int64_t step, int64_t steps, double ms, const StepResult& s) {
      if (step == 0) check_engine(c.algorithm, c.model);
      report.add_step(ms);
      if (!c.profile.empty()) profile.add_step(step, ms);
      bar.update(step + 1, steps, fmt::format("loss {:.4f} {:.0f} ms", s.loss, ms));
    });
    bar.clear();
    report.add_epoch(epoch, sets.train.size(), r);
    if (!c.checkpoint.empty()) {
      save_checkpoint(c.checkpoint, trainer.state(), {epoch + 1, fixed_config(c), tuning_in_use(), to_string(layout)});
    }
  }
  report.finish();
  if (!c.profile.empty()) profile.write(c.profile);
}

}  // namespace

void add_train(const CommandLine& plumb) {
  const CommandLine cmd =
      plumb.subcommand("train", "Train a network and report time, loss and accuracy of every epoch");
  auto c = std::make_shared<TrainConfig>();
  auto words = std::make_shared<std::vector<std::string>>();
  cmd.add("model", *words,
          any_of(model_choices()) + "; or, for scripts that give several frameworks the same seven arguments, " +
              kSeven + ", where FRAMEWORK is ref, this one")
      .required();
  cmd.add("--data", c->data, "Folder of the data set (CIFAR-10, CIFAR-100 or MNIST, by the model), or synthetic")
      .with_default();
  add_device_option(cmd, c->device, "Where to train");
  add_batch_option(cmd, c->batch, "Images a step");
  add_choice(cmd, "--optimizer", c->optimizer, optimizers(), "");
  cmd.add("--lr", c->learning_rate, "Learning rate [the convention's default]").read_by(nonnegative());
  cmd.add("--epochs", c->epochs, "Epochs in total, those of a resumed checkpoint included")
      .read_by(whole_from<int64_t>(1))
      .with_default();
  cmd.add("--momentum", c->momentum, "Momentum of sgd and rmsprop [0]").read_by(nonnegative());
  cmd.add("--weight-decay", c->weight_decay, "Weight decay [the convention's default]").read_by(nonnegative());
  add_choice(cmd, "--convention", c->convention, convention_choices(),
             "Whose formulas, defaults and initial weights: ");
  std::vector<std::string> layouts = layout_choices();
  layouts.insert(layouts.begin(), "auto");
  add_choice(cmd, "--layout", c->layout, layouts,
             "Of images and activations, auto being the fastest measured, or nhwc with --algorithm deterministic: ");
  add_algorithm_option(cmd, c->algorithm);
  add_workspace_option(cmd);
  add_dtype_option(cmd, c->dtype);
  add_choice(cmd, "--mode", c->mode, {"eager", "captured"}, "A captured step is recorded once and replayed: ");
  add_threads_option(cmd);
  cmd.add("--seed", c->seed, "Seed of weights, order, augmentation and dropout")
      .read_by(whole_from<uint64_t>(0))
      .with_default();
  add_limit_option(cmd, c->limit, "Use only the first so many images of each split, 0 for all");
  cmd.add_flag("--augment", c->augment, "Random crops and flips of the training images");
  cmd.add("--init", c->init, "Start from these weights: a file of safetensors, or a checkpoint or its folder");
  cmd.add("--checkpoint", c->checkpoint, "Folder to save the state to after every epoch");
  cmd.add_flag("--resume", c->resume, "Continue from the checkpoint, bit for bit");
  cmd.add("--json", c->json, "Write the report of this run's epochs to this file");
  cmd.add("--csv", c->csv, "Write one line for each epoch of this run to this file");
  cmd.add("--profile", c->profile,
          fmt::format("Write a trace of the first {} kernels for Chrome's trace viewer", Profile::kMost));
  cmd.add_flag("--check-nan", c->check_nan, "Stop at the first NaN and name the op that made it");
  cmd.calls([c, words, cmd] {
    read_positional(*words, cmd, *c);
    train(*c);
  });
}

}  // namespace plumb::app
