#include "dispatch/described.h"

#include <limits>

#include "core/runtime.h"
#include "dispatch/machine.h"
#include "dispatch/policy.h"

namespace plumb::detail {

std::string work_of(const PreparedKernel& p) {
  std::string text = p.kind->name;
  constexpr char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < (p.kind->tunes_alike ? 0 : p.kind->param_words); ++i) {
    text += i ? '.' : ' ';
    for (int shift = 60; shift >= 0; shift -= 4) text += digits[(p.params[i] >> shift) & 15];
  }
  for (const TensorSpec& s : p.in()) text += " " + to_string(s);
  text += " ->";
  for (const TensorSpec& s : p.out()) text += " " + to_string(s);
  const Device d = p.policy.device;
  text += d.is_cpu() ? message(" threads {}", threads_of(p.policy)) : " on " + runtime_of(d).properties().name;
  return text + message(" math {}", static_cast<int>(p.policy.math));
}

std::string describe(const PreparedKernel& p, KernelSet kernels) {
  std::string text = work_of(p);
  if (kernels == KernelSet::kVendor) text += " of the vendor";
  if (p.policy.algorithm) text += message(" among {}", algorithm_name(p.policy.algorithm));
  const size_t limit = workspace_limit(Device());  // as it was set; none by default
  if (limit != std::numeric_limits<size_t>::max()) text += message(" within {} bytes", limit);
  return text;
}

}  // namespace plumb::detail
