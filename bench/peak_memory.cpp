#include "bench/peak_memory.h"

#include <fstream>
#include <string>

#include "core/error.h"

namespace plumb::bench {

int64_t peak_rss_bytes() {
  std::ifstream status("/proc/self/status");
  const std::string name = "VmHWM:";
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::stoll(line.substr(name.size())) * 1024;
  }
  fail("/proc/self/status has no line {}", name);
}

bool reset_peak_rss() {
  std::ofstream file("/proc/self/clear_refs");
  file << 5 << std::flush;
  return file.good();
}

}  // namespace plumb::bench
