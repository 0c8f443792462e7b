// Prepared work in words, by which results of measuring are kept.
#pragma once

#include <string>

#include "kernel_cache.h"

namespace plumb::detail {

/// The work itself, whatever may be chosen for it: "conv2d_forward 00...01 f32 (8, 3, 32, 32) nchw ... -> ... math 0".
std::string work_of(const PreparedKernel& p);
/// The work, and what may be chosen for it: whose kernels, of which family, within which workspace.
std::string describe(const PreparedKernel& p, KernelSet kernels);
inline std::string describe(const PreparedKernel& p) { return describe(p, p.policy.kernels); }

}  // namespace plumb::detail
