// An optimizer's update alone, on fixed gradients.
#pragma once

#include "bench/compare/plumbline/work.h"

namespace plumb::compare {

/// The update that problems/updates.py describes, in the way of the mode. Its results are the parameters after the
/// steps that the problem names. Throws on an unknown optimizer or convention.
std::unique_ptr<Work> prepare_update(const nlohmann::json& problem, const Tensors& tensors, const Mode& mode);

}  // namespace plumb::compare
