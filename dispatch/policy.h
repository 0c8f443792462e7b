// How a program says which kernels to pick, and the names of algorithms.
#pragma once

#include <string_view>

#include "../core/context.h"

namespace plumb {

inline constexpr KernelSet kKernelSets[] = {KernelSet::kAll, KernelSet::kVendor};
/// "all", "vendor".
const char* to_string(KernelSet s);

/// The number of a family of algorithms ("direct", "winograd", "gemm", ...), for Policy::algorithm; 0 for "". The same
/// name has the same number. Throws if no algorithm that the library or register_algorithm knows is of the family.
uint16_t algorithm_id(std::string_view name);
/// Registers the name of a program's own algorithm and returns its number. Preparing a kernel registers the names of
/// all its candidates.
uint16_t register_algorithm(std::string_view name);
/// The name of a number; throws on a number that was never given out.
std::string_view algorithm_name(uint16_t id);
/// Whether an algorithm has the name `family` or belongs to that family: "winograd_f2x2" is of "winograd", and
/// "cudnn_e38" of "cudnn" but not of "cudnn_e3". Every algorithm is of "".
inline bool is_of_family(std::string_view algorithm, std::string_view family) {
  return algorithm.starts_with(family) &&
         (family.empty() || algorithm.size() == family.size() || algorithm[family.size()] == '_');
}

/// While it lives, kernels are picked by this policy. Its threads and device are ignored: only set_threads and
/// DeviceScope set them.
class PolicyScope {
 public:
  /// Throws on values outside the enumerations, and on an algorithm number that was never given out.
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
