// The kernels of a training step, each with what every policy would choose for it.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "app/plan_step.h"

namespace plumb::app {

inline constexpr std::array kAuditedPolicies = {Search::kHeuristic, Search::kHeuristicB, Search::kFallback,
                                                Search::kDeterministic};

/// A kernel for which the vendor's library has plans, with what each policy chooses.
struct AuditRow {
  size_t place = 0;  ///< of the first such kernel in the step that the heuristic plans
  std::array<PlannedKernel, kAuditedPolicies.size()> by;
  int alike = 0;  ///< processes that choose as this one
};

/// Of the steps that the policies plan, in their order. Kernels that do the same work are one row, which is the
/// first's.
std::vector<AuditRow> rows_of(std::span<const PlannedStep> steps);

/// With what comes out, where another row has the same going in, and how many go in, where that is the same too.
std::string shapes_of(const AuditRow& row, const std::vector<AuditRow>& rows);

/// The engine of a plan ("cudnn_e38" of "cudnn_e38_7_fallback"); what is not cuDNN's is one as a whole.
std::string engine_of(const std::string& algorithm);

}  // namespace plumb::app
