#include "kernels/machine.h"

#include <Eigen/Core>
#include <cctype>
#include <fstream>
#include <functional>

#include "core/error.h"
#include "kernels/cpu/dnnl.h"
#include "kernels/cpu/simd.h"

namespace plumb {

std::string version() { return PLUMB_VERSION_STRING; }

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) {
      const size_t colon = line.find(':');
      return colon + 2 <= line.size() ? line.substr(colon + 2) : line;
    }
  }
  return "unknown processor";
}

std::string cpu_isa() {
  std::ifstream in("/proc/cpuinfo");
  std::string flags, found;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("flags")) {
      flags = line + " ";
      break;
    }
  }
  for (const char* isa : {"amx_bf16", "avx512_fp16", "avx512_bf16", "avx512_vnni", "avx512f", "avx2", "fma", "f16c"}) {
    if (flags.find(std::string(" ") + isa + " ") != std::string::npos)
      found += (found.empty() ? "" : " ") + std::string(isa);
  }
  return found.empty() ? "baseline" : found;
}

std::vector<std::string> library_versions() {
  const dnnl_version_t* v = dnnl_version();
  return {message("oneDNN {}.{}.{}", v->major, v->minor, v->patch),
          message("Eigen {}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION)};
}

std::string machine_signature() {
  std::string text = cpu_model() + cpu_isa() + " " + version() + " " + cpu::simd::kIsa;
  for (const std::string& v : library_versions()) text += v;
  return std::to_string(std::hash<std::string>()(text));
}

void check_processor() {
#ifdef __AVX512F__
  PLUMB_CHECK(__builtin_cpu_supports("avx512f"),
              "plumbline was compiled for AVX-512, which this processor lacks; configure with -DPLUMB_ARCH=x86-64-v3");
#endif
#ifdef __AVX2__
  PLUMB_CHECK(__builtin_cpu_supports("avx2"),
              "plumbline was compiled for AVX2, which this processor lacks; configure with -DPLUMB_ARCH=x86-64");
#endif
}

}  // namespace plumb
