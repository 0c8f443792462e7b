#include "app/train_report.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <utility>

#include "core/file.h"
#include "core/runtime.h"
#include "kernels/threads.h"
#include "measure/command/report.h"

namespace plumb::app {

using namespace command;
namespace {

using Json = nlohmann::ordered_json;

Json config_json(const TrainConfig& c) {
  Json j;
  for (const auto& [key, value] : fixed_config(c)) j[key] = value;
  j["device"] = to_string(c.device);
  j["layout"] = to_string(c.training.layout);
  j["mode"] = to_string(c.training.mode);
  j["log_every"] = c.training.log_every;
  j["epochs"] = c.epochs;
  return j;
}

// What steps have moved between host and device together, without the first ones, which prepare.
struct Moved {
  int64_t steps = 0;
  DeviceCounts n;

  explicit Moved(std::span<const DeviceCounts> of_steps) {
    constexpr size_t kPreparing = 2;
    if (of_steps.size() > kPreparing) of_steps = of_steps.subspan(kPreparing);
    steps = static_cast<int64_t>(of_steps.size());
    for (const DeviceCounts& s : of_steps) n = n + s;
  }
  Json json() const {
    const auto transfers = [](const Transfers& t) {
      return Json{{"count", t.count}, {"bytes", t.bytes}, {"seconds", t.seconds}};
    };
    return {{"steps", steps},
            {"to_device", transfers(n.to_device)},
            {"to_host", transfers(n.to_host)},
            {"waits", n.waits},
            {"launches", n.launches},
            {"graph_replays", n.replays}};
  }
};

}  // namespace

void write_profile(training::Profile& profile, const std::string& file) {
  write_text(file, profile.trace());
  if (profile.left_out() == 0) return;
  note(fmt::format("plumb: {} has the first {} kernels and leaves out {}; train on fewer images to see all\n", file,
                   profile.noted(), profile.left_out()));
}

TrainReport::TrainReport(const TrainConfig& c) : config_(c) {
  const Device d = c.device;
  if (!d.is_cpu()) runtime_ = &runtime_of(d);
  json_["config"] = config_json(c);
  json_["environment"] = environment_json(d);
  json_["steps_ms"] = Json::array();
  json_["epochs"] = Json::array();
  csv_ = "epoch,seconds,loss,train_accuracy,test_loss,test_accuracy\n";
}

void TrainReport::begin_epoch() {
  if (runtime_) seen_ = runtime_->counts();
}

void TrainReport::add_step(double ms) {
  json_["steps_ms"].push_back(ms);
  if (!runtime_) return;
  const DeviceCounts now = runtime_->counts(false);  // the host goes on: what is not done counts for a later step
  moved_.push_back(now - std::exchange(seen_, now));
}

void TrainReport::print_transfers() const {
  const Moved moved(moved_);
  const DeviceCounts& n = moved.n;
  const auto a_step = [&](int64_t count) {
    return static_cast<double>(count) / static_cast<double>(std::max<int64_t>(1, moved.steps));
  };
  fmt::print("a step: {:.1f} copies to the device ({}), {:.1f} to the host ({}), {:.1f} waits, {:.1f} launches",
             a_step(n.to_device.count), in_mb(a_step(n.to_device.bytes)), a_step(n.to_host.count),
             in_mb(a_step(n.to_host.bytes)), a_step(n.waits), a_step(n.launches));
  if (n.replays) fmt::print(", {:.1f} replays", a_step(n.replays));
  fmt::print("\n");
}

void TrainReport::add_epoch(int64_t epoch, int64_t images, const training::EpochResult& r) {
  const double loss = shown(r.loss), test_loss = shown(r.test_loss);
  json_["epochs"].push_back({{"epoch", epoch + 1},
                             {"seconds", r.seconds},
                             {"loss", loss},
                             {"train_accuracy", r.train_accuracy},
                             {"test_loss", test_loss},
                             {"test_accuracy", r.test_accuracy}});
  csv_ += fmt::format("{},{},{},{},{},{}\n", epoch + 1, r.seconds, loss, r.train_accuracy, test_loss, r.test_accuracy);
  fmt::print("epoch {:>3}/{}  {:8.2f} s  loss {:.4f}  training accuracy {:.4f}  test accuracy {:.4f}\n", epoch + 1,
             config_.epochs, r.seconds, loss, r.train_accuracy, r.test_accuracy);
  std::fflush(stdout);
  if (!std::isfinite(loss) && !std::exchange(warned_, true)) {
    warn_of_loss(loss, fmt::format("the loss of epoch {}", epoch + 1),
                 "--check-nan stops at the first NaN and names the op that made it");
  }
  if (epochs_ == 1 && !std::exchange(is_first_apart_, true)) seconds_ = 0, images_ = 0, epochs_ = 0;
  seconds_ += r.seconds;
  images_ += images;
  ++epochs_;
  write(When::kMeanwhile);
}

void TrainReport::write(When when) {
  json_["memory_bytes"] = memory_json(memory_of(config_.device).stats());
  if (runtime_) json_["transfers"] = Moved(moved_).json();
  json_["mean_epoch_seconds"] = seconds_ / static_cast<double>(epochs_);
  json_["images_per_second"] = static_cast<double>(images_) / seconds_;
  const auto is_due = [&](const std::string& file) {
    return !file.empty() && detail::is_stream(file) == (when == When::kAtTheEnd);
  };
  if (is_due(config_.json)) write_json(config_.json, json_);
  if (is_due(config_.csv)) write_text(config_.csv, csv_);
}

void TrainReport::finish() {
  fmt::print("mean epoch time {:.2f} s, throughput {:.1f} images/s{}\n", seconds_ / static_cast<double>(epochs_),
             static_cast<double>(images_) / seconds_, is_first_apart_ ? ", but for the first epoch" : "");
  if (runtime_) print_transfers();
  const MemoryStats memory = memory_of(config_.device).stats();
  fmt::print("memory at the peak:");
  for (int c = 0; c < kMemoryClassCount; ++c) {
    const auto bytes = memory.at_peak_bytes[static_cast<size_t>(c)];
    if (bytes) fmt::print(" {} {},", to_string(static_cast<MemoryClass>(c)), in_mb(static_cast<double>(bytes)));
  }
  fmt::print(" total {}\n", in_mb(static_cast<double>(memory.peak_total())));
  write(When::kAtTheEnd);
}

}  // namespace plumb::app
