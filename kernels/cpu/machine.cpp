#include "dispatch/machine.h"

#include <Eigen/Core>
#include <algorithm>
#include <cctype>
#include <fstream>
#include <functional>

#include "core/error.h"
#include "core/runtime.h"
#include "kernels/cpu/onednn/dnnl.h"
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
  text += message(" {}", static_cast<int>(dnnl_get_effective_cpu_isa()));  // which ONEDNN_MAX_CPU_ISA may lower
  for (const std::string& v : library_versions()) text += v;
  text += detail::kernels_digest();
  return std::to_string(std::hash<std::string>()(text));
}

std::vector<std::string> device_library_versions(Device d) {
  if (d.is_cpu() || !runtime_of(d).properties().is_gpu() || !detail::has_cuda_kernels()) return {};
  return detail::vendor_versions();
}

std::string device_signature(Device d) {
  if (d.is_cpu()) return machine_signature();
  const DeviceProperties& p = runtime_of(d).properties();
  std::string name;
  for (const char c : p.name) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
  std::string text = message("{}-sm{}-{}-{}", name, p.capability, version(), detail::kernels_digest());
  for (std::string v : device_library_versions(d)) {
    std::replace(v.begin(), v.end(), ' ', '-');
    text += "-" + v;
  }
  return text;
}

void check_processor() {
  struct Need {
    const char* name;
    bool is_there;
    const char* instead;
  };
  const Need needs[] = {
#ifdef __AVX2__
      {"AVX2", __builtin_cpu_supports("avx2") != 0, "x86-64"},
#endif
#ifdef __FMA__
      {"FMA", __builtin_cpu_supports("fma") != 0, "x86-64"},
#endif
#ifdef __BMI2__
      {"BMI2", __builtin_cpu_supports("bmi2") != 0, "x86-64"},
#endif
#ifdef __AVX512F__
      {"AVX-512", __builtin_cpu_supports("avx512f") != 0, "x86-64-v3"},
#endif
#ifdef __AVX512BW__
      {"AVX-512 BW", __builtin_cpu_supports("avx512bw") != 0, "x86-64-v3"},
#endif
#ifdef __AVX512DQ__
      {"AVX-512 DQ", __builtin_cpu_supports("avx512dq") != 0, "x86-64-v3"},
#endif
#ifdef __AVX512VL__
      {"AVX-512 VL", __builtin_cpu_supports("avx512vl") != 0, "x86-64-v3"},
#endif
#ifdef __AVX512VBMI__
      {"AVX-512 VBMI", __builtin_cpu_supports("avx512vbmi") != 0, "x86-64-v4"},
#endif
#ifdef __AVX512VNNI__
      {"AVX-512 VNNI", __builtin_cpu_supports("avx512vnni") != 0, "x86-64-v4"},
#endif
#ifdef __AVX512BF16__
      {"AVX-512 BF16", __builtin_cpu_supports("avx512bf16") != 0, "x86-64-v4"},
#endif
      {"SSE2", true, ""},
  };
  for (const Need& n : needs) {
    PLUMB_CHECK(n.is_there, "plumbline was compiled for {}, which this processor lacks; configure with -DPLUMB_ARCH={}",
                n.name, n.instead);
  }
}

}  // namespace plumb
