// What dispatch asks of the backends: what the results of measuring depend on, and how many threads there are.
#pragma once

#include <string>
#include <vector>

#include "../core/context.h"

namespace plumb {

/// Plumbline's version, "0.1.0".
std::string version();
/// The model of the processor, as the system names it.
std::string cpu_model();
/// The widest vector instructions of the processor that matter here, widest first: "amx_bf16 avx512_bf16 avx512f avx2".
std::string cpu_isa();
/// "oneDNN 2.6.3", "Eigen 3.4.0", ...
std::vector<std::string> library_versions();
/// Those of the vendor that kernels of a GPU, here or described, are taken from: "cuDNN 9.19.0". Empty for other
/// devices.
std::vector<std::string> device_library_versions(Device d);
/// A short text without spaces that differs when the processor, a library, this library's version or the instructions
/// that it was compiled for do.
std::string machine_signature();
/// The same for the kernels of another device: its name, as far as a file name takes it, and what the results on it
/// depend on. For the host, machine_signature().
std::string device_signature(Device d);
/// Throws a sentence if the library was compiled for instructions that this processor does not have.
void check_processor();

namespace detail {
/// How many threads the host's kernels use under a policy.
int threads_of(const Policy& policy);
}  // namespace detail

}  // namespace plumb
