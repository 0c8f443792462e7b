#include "app/resume.h"

#include <algorithm>
#include <cmath>

#include "core/file.h"

namespace plumb::app {
namespace {

using training::Checkpoint;

constexpr const char* kWayOut = "start anew without --resume";

// Every reason why a checkpoint cannot be resumed ends with the way out.
template <class Read>
Checkpoint resuming(const Read& read) {
  try {
    return read();
  } catch (const Error& e) {
    const std::string why = e.what();
    fail("{}{}", why, why.ends_with(kWayOut) ? "" : std::string("; ") + kWayOut);
  }
}

// How plumb train is asked for an entry of the config, and what to do to ask for the same.
struct Asked {
  std::string as, advice;
};
Asked asked(const std::string& key, const std::string& value) {
  if (key == "model") return {"the model " + value, "train " + value};
  if (key == "data" && value != "synthetic") return {"the data of " + value, "give its folder to --data"};
  std::string option = "--" + (key == "learning_rate" ? "lr" : key);
  std::replace(option.begin(), option.end(), '_', '-');
  if (value == "no" || value == "default") return {"no " + option, "leave " + option + " out"};
  if (value != "yes") option += " " + value;
  return {option, "give " + option};
}

// A checkpoint may come from anywhere, and what is wrong in its optimizer would only show as nonsense.
void check_optimizer(training::Trainer& trainer, const std::string& file, int64_t epochs) {
  const double rate = trainer.optimizer().learning_rate().item();
  PLUMB_CHECK(rate >= 0 && std::isfinite(rate), "{} is not a valid checkpoint: its learning rate is {}; {}", file, rate,
              kWayOut);
  const int64_t steps = trainer.optimizer().steps();
  PLUMB_CHECK(steps % trainer.steps() == 0 && steps / trainer.steps() == epochs,
              "{} is not a checkpoint of this run: it has {} steps done in {} epochs, where an epoch has {}; {}", file,
              steps, epochs, trainer.steps(), kWayOut);
}

}  // namespace

Checkpoint resumable(const std::string& folder, const std::map<std::string, std::string>& expected) {
  Checkpoint saved = resuming([&] { return training::peek_checkpoint(folder); });
  saved.config.emplace("kernels", "all");            // before there was a choice
  for (const char* key : {"device", "workspace"}) {  // before they were written
    if (const auto asked_for = expected.find(key); asked_for != expected.end()) saved.config.insert(*asked_for);
  }
  const std::string file = training::checkpoint_file(folder).string();
  for (const auto& [key, wanted] : expected) {
    const auto it = saved.config.find(key);
    PLUMB_CHECK(it != saved.config.end(), "the checkpoint {} does not say of which {} it is; {}", file, key, kWayOut);
    if (it->second == wanted) continue;
    const auto [as, advice] = asked(key, detail::shortened(it->second));
    fail("the checkpoint {} was made with {}, not {}; {}, or {}", file, as, asked(key, wanted).as, advice, kWayOut);
  }
  return saved;
}

int64_t resume(const std::string& folder, training::Trainer& trainer, int64_t epochs) {
  const std::string file = training::checkpoint_file(folder).string();
  const int64_t done = resuming([&] { return training::load_checkpoint(folder, trainer.state()); }).epochs_done;
  PLUMB_CHECK(done < epochs, "the checkpoint {} has {} epochs done of {}; ask for more with --epochs", file, done,
              epochs);
  check_optimizer(trainer, file, done);
  return done;
}

}  // namespace plumb::app
