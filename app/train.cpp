// plumb train: trains a network and reports every epoch.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "app/command.h"
#include "app/data_source.h"
#include "app/resume.h"
#include "app/train_report.h"
#include "dispatch/policy.h"
#include "dispatch/tuning_cache.h"
#include "measure/command/options.h"
#include "measure/command/report.h"
#include "models/weights.h"
#include "train/fastest_layout.h"
#include "train/nan_check.h"
#include "train/observers.h"

namespace plumb::app {
namespace {

constexpr const char* kSeven = "DEVICE FRAMEWORK MODEL EPOCHS BATCH OPTIMIZER LEARNING_RATE";

// What scripts that drive several frameworks alike give: seven arguments in a row. This framework is "ref".
void read_seven(const std::vector<std::string>& words, TrainConfig& c) {
  const auto read = [](const char* what, const auto& value) {
    try {
      return value();
    } catch (const Error& e) {
      fail("{}: {}", what, e.what());
    }
  };
  c.device = read("DEVICE", [&] { return device_from_string(words[0]); });
  read("FRAMEWORK", [&] { return place_of(words[1], {"ref"}); });
  c.model = read("MODEL", [&] { return named(words[2], model_choices()); });
  c.epochs = read("EPOCHS", [&] { return whole_number<int64_t>(words[3], 1); });
  c.training.batch = read("BATCH", [&] { return whole_number<int64_t>(words[4], 1, kMostImages); });
  c.optimizer = read("OPTIMIZER", [&] { return named(words[5], optim::kKinds); });
  c.settings.learning_rate = read("LEARNING_RATE", [&] { return nonnegative_number(words[6]); });
}

void read_positional(const std::vector<std::string>& words, const CommandLine& cmd, TrainConfig& c) {
  if (words.size() == 1) {
    c.model = named(words[0], model_choices());
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
  const std::string state = c.checkpoint.empty() ? "" : training::checkpoint_file(c.checkpoint).string();
  const std::string init = c.init.empty() ? "" : training::weights_file(c.init).string();
  if (!state.empty()) check_writable_in(c.checkpoint, training::checkpoint_file("").string());
  check_outputs(outputs_of(c), {{"--init", init}, {"--checkpoint", state}});
  PLUMB_CHECK(init.empty() || state.empty() || !is_same_file(init, state),
              "--init and --checkpoint name the same file {}; give --checkpoint another folder", init);
}

// The layout of a run, and who chose it where the user did not.
struct ChosenLayout {
  Layout layout;
  const char* by = "";
};

ChosenLayout layout_of(const TrainConfig& c, const training::Checkpoint* resumed, const models::Network& network,
                       int64_t images) {
  if (resumed) {
    const Layout saved = resumed->layout, asked = c.layout.value_or(saved);
    PLUMB_CHECK(asked == saved,
                "the checkpoint {} was made with --layout {}, not --layout {}; give --layout {}, or start anew without "
                "--resume",
                training::checkpoint_file(c.checkpoint).string(), saved, asked, saved);
    return {saved, c.layout ? "" : " (the checkpoint's)"};
  }
  if (c.layout) return {*c.layout};
  const DType dtype = activations_of(c.training.precision);
  if (c.kernels.search == Search::kDeterministic) {  // the clock must not decide
    return {training::usual_layout(network.device(), dtype)};
  }
  return {training::fastest_layout(network, dtype, std::min(c.training.batch, images)), " (fastest measured)"};
}

void train(TrainConfig c) {
  check(c);
  if (c.model == "vgg") c.model = "vgg16";
  check_device(c.device, c.kernels, c.training.precision);
  const PolicyScope policy(policy_of(c.kernels, c.training.precision));
  const DeviceScope on(c.device);
  auto network = models::make_network(c.model, c.training.seed, c.settings.convention);
  if (!c.init.empty()) models::load_weights(*network, training::weights_file(c.init));
  auto optimizer = optim::make(c.optimizer, network->trainable(), c.settings);
  const datasets::TrainTest sets = load_for(c.model, c.data, c.limit);
  check_distinct(outputs_of(c), files_of({&sets.train, &sets.test}));

  std::optional<training::Checkpoint> resumed;
  if (c.resume) {
    resumed = resumable(c.checkpoint, fixed_config(c));
    adopt_tuning(resumed->choices);
  }
  const auto [layout, by] = layout_of(c, resumed ? &*resumed : nullptr, *network, sets.train.size());
  c.training.layout = layout;
  c.training.normalization = normalization_of(c.model);
  if (c.augment) c.training.augmentation = datasets::Augmentation::cifar();
  training::Trainer trainer(std::move(network), std::move(optimizer), sets.train, sets.test, c.training);
  const int64_t first_epoch = c.resume ? resume(c.checkpoint, trainer, c.epochs) : 0;
  fmt::print("{} ({} parameters) on {}, {} + {} images, batch {}, {}, layout {}{}, {}, {}, {}\n", c.model,
             trainer.network().parameter_count(), sets.train.name, sets.train.size(), sets.test.size(),
             c.training.batch, to_string(c.optimizer), to_string(layout), by, to_string(c.training.mode),
             whose(c.kernels), where(c.device));
  std::fflush(stdout);

  training::Profile profile;
  training::NanCheck nan_check;
  training::Observers observers;
  if (!c.profile.empty()) observers.add(&profile);
  if (c.check_nan) observers.add(&nan_check);
  const ObserverScope watch(observers.empty() ? nullptr : &observers);
  memory_of(c.device).reset_peaks();

  TrainReport report(c);
  for (int64_t epoch = first_epoch; epoch < c.epochs; ++epoch) {
    ProgressBar bar(fmt::format("epoch {}", epoch + 1));
    report.begin_epoch();
    const training::EpochResult r = trainer.run_epoch(epoch, [&](const training::StepReport& s) {
      if (s.step == 0) check_algorithm(c.kernels, c.model);
      report.add_step(s.ms);
      if (!c.profile.empty()) profile.add_step(s.step, s.ms);
      if (s.loss) bar.update(s.step + 1, s.steps, fmt::format("loss {:.4f} {:.0f} ms", *s.loss, s.ms));
    });
    bar.clear();
    report.add_epoch(epoch, sets.train.size(), r);
    if (!c.checkpoint.empty()) {
      training::save_checkpoint(c.checkpoint, trainer.state(), {epoch + 1, fixed_config(c), tuning_in_use(), layout});
    }
  }
  report.finish();
  if (!c.profile.empty()) write_profile(profile, c.profile);
}

void add_layout_option(const CommandLine& cmd, std::optional<Layout>& layout) {
  constexpr const char* kAuto = "auto";
  std::vector<std::string> names = names_of(kPublicLayouts);
  names.insert(names.begin(), kAuto);
  const auto take = [&layout, names](const std::string& text) {
    const size_t place = place_of(text, names);
    layout = place == 0 ? std::nullopt : std::optional(kPublicLayouts[place - 1]);
  };
  cmd.add("--layout", take,
          {"Of images and activations, auto being the fastest measured, or with --algorithm deterministic nhwc (of f32 "
           "on a "
           "GPU nchw): " +
               any_of(names),
           kAuto});
}

}  // namespace

void add_train(const CommandLine& plumb) {
  const CommandLine cmd =
      plumb.subcommand("train", "Train a network and report time, loss and accuracy of every epoch");
  auto c = std::make_shared<TrainConfig>();
  auto words = std::make_shared<std::vector<std::string>>();
  cmd.add_all(
      "model", *words,
      {.text = any_of(model_choices()) + "; or, for scripts that give several frameworks the same seven arguments, " +
               kSeven + ", where FRAMEWORK is ref, this one",
       .is_required = true});
  cmd.add(
      "--data", c->data,
      {"Folder of the data set (CIFAR-10, CIFAR-100 or MNIST, by the model), or synthetic, as for resnet50", c->data});
  add_device_option(cmd, c->device, "Where to train");
  add_batch_option(cmd, c->training.batch, "Images a step");
  add_choice(cmd, "--optimizer", c->optimizer, optim::kKinds, {});
  add_nonnegative(cmd, "--lr", c->settings.learning_rate, "Learning rate [the convention's default]");
  add_whole<int64_t>(cmd, "--epochs", c->epochs, "Epochs in total, those of a resumed checkpoint included", 1);
  add_nonnegative(cmd, "--momentum", c->settings.momentum, "Momentum of sgd and rmsprop [0]");
  add_nonnegative(cmd, "--weight-decay", c->settings.weight_decay, "Weight decay [the convention's default]");
  add_choice(cmd, "--convention", c->settings.convention, kConventions,
             {"Whose formulas, defaults and initial weights: "});
  add_layout_option(cmd, c->layout);
  add_kernel_options(cmd, c->kernels);
  add_workspace_option(cmd);
  add_dtype_option(cmd, c->training.precision);
  add_choice(cmd, "--mode", c->training.mode, training::kStepModes,
             {"A captured step is recorded once and replayed: "});
  add_threads_option(cmd);
  add_whole<uint64_t>(cmd, "--seed", c->training.seed, "Seed of weights, order, augmentation and dropout", 0);
  add_limit_option(cmd, c->limit, "Use only the first so many images of each split, 0 for all");
  cmd.add_flag("--augment", c->augment, "Random crops and flips of the training images");
  cmd.add("--init", c->init, {"Start from these weights: a file of safetensors, or a checkpoint or its folder"});
  cmd.add("--checkpoint", c->checkpoint, {"Folder to save the state to after every epoch"});
  cmd.add_flag("--resume", c->resume, "Continue from the checkpoint, bit for bit");
  add_whole<int64_t>(cmd, "--log-every", c->training.log_every,
                     "Read losses after every so many steps: a device is not waited for between. Those of an epoch are "
                     "the means over all its steps anyway",
                     1);
  cmd.add("--json", c->json, {"Write the report of this run's epochs to this file"});
  cmd.add("--csv", c->csv, {"Write one line for each epoch of this run to this file"});
  cmd.add("--profile", c->profile,
          {fmt::format("Write a trace of the first {} kernels for Chrome's trace viewer", training::Profile::kMost)});
  cmd.add_flag("--check-nan", c->check_nan, "Stop at the first NaN and name the op that made it");
  cmd.calls([c, words, cmd] {
    read_positional(*words, cmd, *c);
    train(*c);
  });
}

}  // namespace plumb::app
