#include "app/device_description.h"

#include <map>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "measure/command/values.h"

namespace plumb::app {

using namespace command;

constexpr int64_t kMostBytes = 1 << 20;

/// The descriptions of app/devices, by name; made by CMake.
const std::map<std::string, std::string>& builtin_devices();

std::vector<std::string> described_devices() {
  std::vector<std::string> names;
  for (const auto& [name, text] : builtin_devices()) names.push_back(name);
  return names;
}

void add_device_description_option(const CommandLine& cmd, std::string& on) {
  cmd.add("--on", on,
          {.text = "The GPU: " + any_of(described_devices()) + ", or FILE.json, a description as cuDNN writes it",
           .is_required = true});
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

measure::DeviceRoofs roofs_of(const std::string& description) {
  const auto d = nlohmann::json::parse(description);
  const auto number = [&](const char* key) {
    const double n = d.contains(key) && d[key].is_number() ? d[key].get<double>() : 0.0;
    constexpr double kMost = 1e9;  // beyond any device's, and far from where roofs would not be numbers
    PLUMB_CHECK(n >= 1 && n <= kMost,
                "the description of a device has no \"{}\" from 1 to {}; its roofs cannot be told without", key, kMost);
    return n;
  };
  measure::DeviceRoofs r;
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

}  // namespace plumb::app
