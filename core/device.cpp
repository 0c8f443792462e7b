#include "core/device.h"

#include "core/error.h"

namespace plumb {

std::string to_string(Device d) { return d.type == DeviceType::kCpu ? "cpu" : "cuda:" + std::to_string(d.index); }

Device device_from_string(std::string_view name) {
  if (name == "cpu") return {};
  PLUMB_CHECK(!name.starts_with("cuda"), "\"{}\": this build has no CUDA kernels; use cpu", name);
  fail("\"{}\" is unknown; use cpu", name);
}

}  // namespace plumb
