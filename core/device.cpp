#include "core/device.h"

namespace plumb {

std::string to_string(Device d) { return d.type == DeviceType::kCpu ? "cpu" : "cuda:" + std::to_string(d.index); }

}  // namespace plumb
