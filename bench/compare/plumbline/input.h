// Batches of images from bytes, alone and with training.
#pragma once

#include "bench/compare/plumbline/work.h"

namespace plumb::compare {

/// The pipeline that problems/inputs.py describes, in the way of the mode's `input`. Its results are the first batch,
/// normalised, not changed at random.
std::unique_ptr<Work> prepare_input(const nlohmann::json& problem, const Tensors& tensors, const Mode& mode);

}  // namespace plumb::compare
