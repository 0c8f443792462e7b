// Where values live and kernels run.
#pragma once

#include <cstdint>
#include <string>

namespace plumb {

enum class DeviceType : uint8_t { kCpu = 0, kCuda = 1 };

/// The host, or a device by its number.
struct Device {
  DeviceType type = DeviceType::kCpu;
  uint8_t index = 0;
  bool is_cpu() const { return type == DeviceType::kCpu; }
  bool operator==(const Device&) const = default;
};
/// "cpu" or "cuda:0".
std::string to_string(Device d);
/// The inverse; "cuda" is cuda:0. Throws on an unknown name, and on a device that this process does not have.
Device device_from_string(std::string_view name);

}  // namespace plumb
