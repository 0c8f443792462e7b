// The files of tensors through which the sides of the comparison share inputs and results.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/compare/plumbline/catalogue.h"

namespace plumb::compare {

/// All tensors of a file of safetensors, by name. Throws what load_safetensors throws.
Tensors read_tensors(const std::string& file);
/// From any device; row-major, and in f32 what is floating.
void write_tensors(const std::string& file, const Tensors& tensors);

/// Writes the file that a request describes: {"file", "seed", "network" and whose "initial" distribution its weights
/// have, or neither, "inputs": {name: {"shape", "low", "high", "classes"}}}. These are random tensors, and a network's
/// weights in its first distribution (but for what is to be one number, low = high) with its running statistics.
void make_inputs(const nlohmann::json& request);

}  // namespace plumb::compare
