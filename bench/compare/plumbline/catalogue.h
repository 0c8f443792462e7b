// The ops of bench/compare/problems/catalogue.py, by name.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/tensor.h"
#include "kernels/conv2d.h"

namespace plumb::compare {

using Tensors = std::map<std::string, Tensor>;

/// A convolution's parameters from its attributes.
Conv2dParams conv2d_params(const nlohmann::json& attributes);

/// The output of the op of this name, from its inputs by their names. Throws on a name that it does not know, and what
/// the op throws.
Tensor call(const std::string& op, const Tensors& inputs, const nlohmann::json& attributes);

}  // namespace plumb::compare
