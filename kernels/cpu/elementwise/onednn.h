// oneDNN's elementwise primitives as alternatives to our own loops.
#pragma once

#include <string_view>

#include "kernels/cpu/offer.h"
#include "kernels/functors/stages.h"

namespace plumb::cpu {

/// Offers oneDNN's eltwise for a stage of the named functor, whose attributes begin at `f`. Empty unless oneDNN
/// computes the same, except for rounding, for every number, infinity and NaN.
Offer dnnl_unary(std::string_view functor, Keeps keeps, detail::Stage stage, const Problem<NoParams>& p, const void* f);
/// The same for oneDNN's binary.
Offer dnnl_binary(std::string_view functor, detail::Stage stage, const Problem<NoParams>& p);

}  // namespace plumb::cpu
