#include "core/device.h"

#include <charconv>

#include "core/error.h"
#include "core/runtime.h"

namespace plumb {

std::string to_string(Device d) { return d.is_cpu() ? "cpu" : "cuda:" + std::to_string(d.index); }

Device device_from_string(std::string_view name) {
  if (name == "cpu") return {};
  const std::string_view digits = name == "cuda" ? "0" : name.starts_with("cuda:") ? name.substr(5) : "";
  uint8_t index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  PLUMB_CHECK(!digits.empty() && error == std::errc() && end == digits.data() + digits.size(),
              "\"{}\" is unknown; use cpu, cuda or cuda:N", name);
  const Device d{DeviceType::kCuda, index};
  runtime_of(d);  // throws where there is none
  return d;
}

}  // namespace plumb
