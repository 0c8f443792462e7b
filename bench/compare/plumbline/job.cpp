#include "bench/compare/plumbline/job.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include "bench/allocations.h"
#include "bench/compare/plumbline/kernels_seen.h"
#include "bench/compare/plumbline/tensor_files.h"
#include "bench/peak_memory.h"
#include "core/context.h"
#include "core/memory.h"
#include "core/stopwatch.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/fill.h"

namespace plumb::compare {
namespace {

using nlohmann::json;

struct Counters {
  int64_t page_faults, switches, allocations;
  double user_s, system_s;
};

double seconds(const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); }

Counters counters() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return {u.ru_minflt + u.ru_majflt, u.ru_nivcsw, bench::allocation_count(), seconds(u.ru_utime), seconds(u.ru_stime)};
}

// Bytes of the device's allocator by class when their sum was largest, in a job's runs; of a GPU the sum too.
json memory_by_class(Device device) {
  const MemoryStats stats = memory_of(device).stats();
  json bytes = json::object();
  if (!device.is_cpu()) bytes["device"] = stats.peak_total();
  for (int i = 0; i < kMemoryClassCount; ++i) {
    bytes[to_string(static_cast<MemoryClass>(i))] = stats.at_peak_bytes[static_cast<size_t>(i)];
  }
  return bytes;
}

// A fault is the host's, wherever the work is.
Tensor ones_on_host(const Shape& shape) {
  const DeviceScope host{Device()};
  return ones(shape);
}

// The clock that all processes share.
double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Fault::Fault(const json& inject)
    : sleep_s_(inject.value("sleep_s", 0.0)),
      source_(inject.value("copy_bytes", size_t{0}), 1),
      target_(source_.size()),
      images_(ones_on_host(Shape{inject.value("convert_bytes", int64_t{0}) / (4 * 64 * 1024), 64, 32, 32})) {}

void Fault::operator()() {
  if (sleep_s_ <= 0 && source_.empty() && images_.numel() == 0) return;
  const detail::Stopwatch watch;
  if (sleep_s_ > 0) usleep(static_cast<useconds_t>(1e6 * sleep_s_));
  if (!source_.empty()) std::memcpy(target_.data(), source_.data(), source_.size());
  if (images_.numel() > 0) to(images_, Layout::kNhwc);
  took_s_ += watch.seconds();
}

Job::Job(std::unique_ptr<Work> work, Device device, const json& inject)
    : work_(std::move(work)),
      device_(device),
      runtime_(device.is_cpu() ? nullptr : &runtime_of(device)),
      fault_(inject) {}

void Job::wait() const {
  if (runtime_) runtime_->wait(runtime_->stream());
}

json Job::run(const json& request) {
  if (calls_ == 0) forget_peak();
  warm_up(request.value("warm_s", 0.0), request.value("warm_calls", 0));
  const int samples = request.at("samples"), least_calls = request.value("least_calls", 1);
  const double least_s = request.at("least_s");
  PLUMB_CHECK(samples >= 1 && least_calls >= 1 && std::isfinite(least_s),
              "run: samples is {}, least_calls {} and least_s {}; use numbers from 1 on, and seconds", samples,
              least_calls, least_s);
  if (calls_ == 0) calls_ = calls_for(least_s, least_calls);
  std::vector<double> times;
  times.reserve(static_cast<size_t>(samples));
  const double fault_s = fault_.took_s(), began = monotonic_s();
  const Counters before = counters();
  for (int i = 0; i < samples; ++i) times.push_back(seconds_of_calls() / calls_);
  const Counters after = counters();
  const double ended = monotonic_s();
  const double n = static_cast<double>(samples) * calls_;
  return {{"samples_s", times},
          {"calls", calls_},
          {"fault_s", (fault_.took_s() - fault_s) / n},
          {"began", began},
          {"ended", ended},
          {"peak_bytes", has_peak_ ? json(bench::peak_rss_bytes()) : json()},
          {"memory", memory_by_class(device_)},
          {"page_faults", static_cast<double>(after.page_faults - before.page_faults) / n},
          {"allocations", static_cast<double>(after.allocations - before.allocations) / n},
          {"switches", static_cast<double>(after.switches - before.switches) / n},
          {"user_s", (after.user_s - before.user_s) / n},
          {"system_s", (after.system_s - before.system_s) / n}};
}

json Job::epoch(const json& request) {
  epochs_.read(request.at("data"), request.at("orders"));
  return epochs_.run(*work_, request.at("epoch"), request.at("scored"));
}

json Job::train(int calls, const std::string& inputs, const std::string& results) {
  PLUMB_CHECK(calls >= 1 && calls_ == 0, "train: calls is {}; ask for one or more, and before any run", calls);
  KernelsSeen kernels;
  double loss = 0;
  for (int i = 1; i <= calls; ++i) {
    const ObserverScope observed(i == calls ? &kernels : nullptr);
    step();
    if (i == 1) loss = work_->losses().back();
  }
  wait();
  const DeviceScope host{Device()};
  const Tensors first = read_tensors(inputs);
  Tensors changes{{"loss", full(TensorSpec(Shape{}), loss)}};
  for (const auto& [name, w] : work_->weights()) changes["d" + name] = to(w, Device()) - first.at(name);
  write_tensors(results, changes);
  return {{"kernels", kernels.list()}};
}

json Job::losses(size_t steps) {
  while (work_->losses().size() < steps) step();
  return {{"losses",
           std::vector<double>(work_->losses().begin(), work_->losses().begin() + static_cast<ptrdiff_t>(steps))}};
}

void Job::step() {
  work_->step();
  fault_();
}

// What was read, made and written beside the work is given back.
void Job::forget_peak() {
  for (Allocator* memory : {&cpu_memory(), &memory_of(device_)}) {
    memory->trim();
    memory->reset_peaks();
  }
  malloc_trim(0);
  has_peak_ = bench::reset_peak_rss();
}

// As workers/serve.py says.
void Job::warm_up(double warm_s, int warm_calls) {
  for (int i = 0; i < warm_calls; ++i) step();
  wait();
  constexpr double kMostWarm = 8;
  const double least = least_s_;
  const detail::Stopwatch watch;
  double now = 0, seconds = 0;
  while (now < warm_s || (now < kMostWarm * warm_s && seconds > 2 * least)) {
    step();
    wait();  // or a GPU would have seconds of work queued by then
    seconds = watch.seconds() - now;
    now += seconds;
    least_s_ = least_s_ > 0 ? std::min(least_s_, seconds) : seconds;
  }
}

// The clock begins when the device has nothing to do, and ends when it has done all.
double Job::seconds_of_calls() {
  wait();
  return detail::seconds_of([this] {
    for (int c = 0; c < calls_; ++c) step();
    wait();
  });
}

int Job::calls_for(double least_s, int least_calls) {
  constexpr int kMost = 1 << 20;
  for (calls_ = least_calls; least_s > 0 && seconds_of_calls() < least_s && calls_ < kMost;) calls_ *= 2;
  return calls_;
}

double pulse_s() {
  double least = std::numeric_limits<double>::max();
  uint64_t product = 1;
  for (int i = 0; i < 5; ++i) {
    least = std::min(least, detail::seconds_of([&] {
                       for (int k = 0; k < 100'000; ++k) {
                         product *= 0x5851f42d4c957f2d;
                         asm volatile("" : "+r"(product));  // each waits for the one before, in a register
                       }
                     }));
  }
  return least;
}

}  // namespace plumb::compare
