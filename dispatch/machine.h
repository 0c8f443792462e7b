// What dispatch needs to know of the machine: what measured results depend on, and how many threads there are.
#pragma once

#include <string>
#include <vector>

#include "../core/context.h"

namespace plumb {

/// Plumbline's version, "0.1.0".
std::string version();
/// The processor's model, as the system names it.
std::string cpu_model();
/// The processor's vector instructions that matter here, widest first: "amx_bf16 avx512_bf16 avx512f avx2".
std::string cpu_isa();
/// "oneDNN 2.6.3", "Eigen 3.4.0", ...
std::vector<std::string> library_versions();
/// The versions of the vendor's libraries that provide a GPU's kernels, present or described: "cuDNN 9.19.0". Empty for
/// other devices.
std::vector<std::string> device_library_versions(Device d);
/// A short text without spaces. It changes with the processor, with a library's or Plumbline's version, with the
/// sources of its kernels, and with the instructions that they were compiled for.
std::string machine_signature();
/// The same for the kernels of another device: its name, in characters fit for a file name, and what its results depend
/// on. For the host, machine_signature().
std::string device_signature(Device d);
/// Throws if the library was compiled for instructions that this processor does not have.
void check_processor();

namespace detail {
/// A digest of the sources of the kernels, written when they are built (cmake/KernelsDigest.cmake).
std::string kernels_digest();
/// How many threads the host's kernels use under this policy.
int threads_of(const Policy& policy);
/// Throws, as `what`, where so many threads of a kernel would not start: inside a parallel region of OpenMP, unless it
/// is one, and the calling thread has set_threads(1) there.
void refuse_in_region(const char* what, int threads);
}  // namespace detail

}  // namespace plumb
