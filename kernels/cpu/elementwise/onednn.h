// oneDNN's elementwise primitives beside the loops of our own.
#pragma once

#include <string_view>

#include "dispatch/kernel.h"
#include "kernels/functors/stages.h"

namespace plumb::cpu {

/// Offers oneDNN's eltwise for a stage of the functor of that name, whose attributes begin at `f`, where it computes
/// the same: rounding apart, for every number, infinity and NaN.
void offer_dnnl_unary(std::string_view functor, Keeps keeps, detail::Stage stage, const Problem<NoParams>& p,
                      const void* f, Candidates& candidates);
/// The same of oneDNN's binary.
void offer_dnnl_binary(std::string_view functor, detail::Stage stage, const Problem<NoParams>& p,
                       Candidates& candidates);

}  // namespace plumb::cpu
