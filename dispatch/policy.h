// What a program says of how kernels are picked, and the names of algorithms that it says it by.
#pragma once

#include <string_view>

#include "../core/context.h"

namespace plumb {

inline constexpr KernelSet kKernelSets[] = {KernelSet::kAll, KernelSet::kVendor};
/// "all", "vendor".
const char* to_string(KernelSet s);

/// The number of a family of algorithms ("direct", "winograd", "gemm", ...), for Policy::algorithm; 0 for "". The same
/// name gives the same number. Throws on a name with which none begins that the library or register_algorithm knows.
uint16_t algorithm_id(std::string_view name);
/// Makes the name of one of a program's own algorithms known, and returns its number. Preparing a kernel does the same
/// for the names of all its candidates.
uint16_t register_algorithm(std::string_view name);
/// The name behind a number; throws on a number that was never given.
std::string_view algorithm_name(uint16_t id);
/// Whether an algorithm is the one that is named, or of the family of that name: "winograd_f2x2" is of "winograd", and
/// "cudnn_e38" of "cudnn" but not of "cudnn_e3". All are of "".
inline bool is_of_family(std::string_view algorithm, std::string_view family) {
  return algorithm.starts_with(family) &&
         (family.empty() || algorithm.size() == family.size() || algorithm[family.size()] == '_');
}

/// While it lives, kernels are picked this way, by as many threads and on the device as before: these belong to
/// set_threads and DeviceScope.
class PolicyScope {
 public:
  /// Throws on values that are none of the enumerators', and on the number of an algorithm that was never given.
  explicit PolicyScope(Policy c);
  ~PolicyScope() { set(old_); }
  PolicyScope(const PolicyScope&) = delete;
  PolicyScope& operator=(const PolicyScope&) = delete;

 private:
  static void set(Policy c) {
    c.threads = detail::ctx.policy.threads;
    c.device = detail::ctx.policy.device;
    detail::ctx.policy = c;
  }
  Policy old_;
};

}  // namespace plumb
