#include "app/device_roofs.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "app/roofs.h"
#include "app/values.h"
#include "core/file.h"
#include "dispatch/kernel_cache.h"
#include "dispatch/policy.h"
#include "dispatch/repeated.h"
#include "kernels/matmul.h"

namespace plumb::app {

constexpr int64_t kMostBytes = 1 << 20;

/// The descriptions of app/devices, by name; made by CMake.
const std::map<std::string, std::string>& builtin_devices();

std::vector<std::string> described_devices() {
  std::vector<std::string> names;
  for (const auto& [name, text] : builtin_devices()) names.push_back(name);
  return names;
}

std::string device_description(const std::string& name_or_file) {
  const auto found = builtin_devices().find(name_or_file);
  if (found != builtin_devices().end()) return found->second;
  PLUMB_CHECK(name_or_file.ends_with(".json"),
              "\"{}\" is unknown; use {}, or FILE.json, a description as cuDNN writes it", name_or_file,
              any_of(described_devices()));
  const detail::InputFile file = detail::open_input(name_or_file);
  PLUMB_CHECK(file.bytes <= kMostBytes, "{} has {} bytes, which is no description of a device", name_or_file,
              file.bytes);
  std::string text(static_cast<size_t>(file.bytes), '\0');
  PLUMB_CHECK(std::fread(text.data(), 1, text.size(), file.stream.get()) == text.size(), "{} cannot be read",
              name_or_file);
  return text;
}

double DeviceRoofs::flops(DType t, MathMode m) const {
  if (t == DType::kBf16 || t == DType::kF16) return bf16;
  if (t == DType::kF64 && f64 > 0) return f64;
  return t == DType::kF32 && m == MathMode::kTf32 ? tf32 : f32;
}

double DeviceRoofs::floor(double work_bytes, double work_flops, DType t, MathMode m) const {
  const double rate = flops(t, m);
  return std::max(bytes > 0 ? work_bytes / bytes : 0, rate > 0 ? work_flops / rate : 0);
}

namespace {

// What a multiprocessor does in a clock: lanes of f32 (NVIDIA, CUDA C++ Programming Guide, arithmetic instructions),
// and dense FLOPs of its tensor cores in bf16 (the architectures' white papers), of which tf32 is half.
struct PerClock {
  int capability;  // from this one on
  double f32_lanes, bf16_flops;
};
constexpr PerClock kPerClock[] = {{80, 64, 2048}, {86, 128, 1024}, {89, 128, 1024}, {90, 128, 4096}, {100, 128, 8192}};

// What is reached on a device itself: a copy of large tensors, and a product of 8192 x 8192 matrices of random bf16.
struct Reached {
  const char* name;
  double multiprocessors, bytes, bf16;
};
constexpr Reached kReached[] = {{"NVIDIA H200", 132, 4.3e12, 790e12}};

}  // namespace

DeviceRoofs roofs_of(const std::string& description) {
  const auto d = nlohmann::json::parse(description);
  const auto number = [&](const char* key) {
    const double n = d.contains(key) && d[key].is_number() ? d[key].get<double>() : 0.0;
    PLUMB_CHECK(n > 0, "the description of a device has no \"{}\" above 0; its roofs cannot be told without", key);
    return n;
  };
  DeviceRoofs r;
  const double processors = number("multiProcessorCount"), clock = number("smClockRateKHz") * 1e3;
  r.bytes = 2 * number("memClockRateKHz") * 1e3 * number("memoryBusWidth") / 8;  // two transfers a clock
  for (const PerClock& p : kPerClock) {
    if (number("deviceVer") < p.capability * 10) continue;
    r.f32 = 2 * p.f32_lanes * processors * clock;
    r.bf16 = p.bf16_flops * processors * clock;
  }
  for (const Reached& reached : kReached) {
    if (d.value("deviceName", "") != reached.name || processors != reached.multiprocessors) continue;
    r.bytes = reached.bytes;
    r.bf16 = reached.bf16;
    r.is_measured = true;
  }
  r.tf32 = r.bf16 / 2;
  return r;
}

namespace {

// FLOPs a second of the best product, by the kernel that is the fastest for it.
double best_product(Device device, DType t, MathMode math) {
  const DeviceScope there(device);
  Policy policy = detail::ctx.policy;
  policy.search = Search::kMeasured;
  policy.algorithm = 0;
  policy.math = math;
  const PolicyScope measured(policy);
  double best = 0;
  for (const int64_t n : {128, 512, 2048, 8192}) {
    const TensorSpec s(Shape{n, n}, t);
    const auto product = prepare<Matmul>({}, {s, s}, {s});
    detail::Scratch scratch(product->in(), product->out(), {}, device);
    const detail::Trial trial(scratch, product->in(), *product->kernel);
    const double seconds = detail::Repeated(device, [&](Runtime::Stream stream) { trial.run(stream); }).best_seconds(5);
    const double cubed = static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    best = std::max(best, 2 * cubed / seconds);
    if (seconds > 0.02) break;  // what starting costs is long out of sight: a larger one would only take time
  }
  return best;
}

}  // namespace

void raise_arithmetic(DeviceRoofs& r, Device device) {
  r.f32 = std::max(r.f32, best_product(device, DType::kF32, MathMode::kStrict));
  if (runtime_of(device).properties().is_gpu())
    r.tf32 = std::max(r.tf32, best_product(device, DType::kF32, MathMode::kTf32));
  r.bf16 = std::max(r.bf16, best_product(device, DType::kBf16, MathMode::kStrict));
  r.f64 = std::max(r.f64, best_product(device, DType::kF64, MathMode::kStrict));
}

DeviceRoofs measure_roofs(Device device) {
  DeviceRoofs r;
  r.is_measured = true;
  raise_arithmetic(r, device);
  const DeviceProperties& p = runtime_of(device).properties();
  const size_t bytes = std::max(size_t{16} << 20, std::min(16 * p.cache_bytes, p.memory_bytes / 8));
  r.bytes = static_cast<double>(bytes) / DeviceCopy(device, bytes).best_seconds();
  return r;
}

DeviceCopy::DeviceCopy(Device device, size_t bytes)
    : runtime_(runtime_of(device)), half_(std::max<size_t>(sizeof(float), bytes / 2)) {
  const TensorSpec numbers(Shape{static_cast<int64_t>((half_ + sizeof(float) - 1) / sizeof(float))});
  for (int i = 0; i < sets_beyond_caches(bytes, device); ++i) {
    sets_.push_back(
        std::make_unique<detail::Scratch>(std::span(&numbers, 1), std::span(&numbers, 1), detail::Values{}, device));
  }
}

void DeviceCopy::run(Runtime::Stream stream) {
  const detail::Scratch& s = *sets_[next_];
  runtime_.copy(s.out()[0], s.in()[0], half_, Runtime::Direction::kWithin, stream);
  if (++next_ == sets_.size()) next_ = 0;
}

double DeviceCopy::best_seconds(int rounds) {
  return detail::Repeated(
             sets_[0]->device(), [&](Runtime::Stream stream) { run(stream); }, sets())
      .best_seconds(rounds);
}

}  // namespace plumb::app
