// oneDNN's elementwise primitives beside the loops of our own.
#pragma once

#include <string_view>

#include "kernels/cpu/offer.h"
#include "kernels/functors/stages.h"

namespace plumb::cpu {

/// The offer of oneDNN's eltwise for a stage of the functor of that name, whose attributes begin at `f`, where it
/// computes the same: rounding apart, for every number, infinity and NaN. Empty where it does not.
Offer dnnl_unary(std::string_view functor, Keeps keeps, detail::Stage stage, const Problem<NoParams>& p, const void* f);
/// The same of oneDNN's binary.
Offer dnnl_binary(std::string_view functor, detail::Stage stage, const Problem<NoParams>& p);

}  // namespace plumb::cpu
