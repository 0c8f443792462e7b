#include "ops/fill.h"

#include "kernels/fill.h"
#include "kernels/gate.h"

namespace plumb {

Tensor full(const TensorSpec& spec, double value) { return run<Fill>({value}, {}, spec); }

}  // namespace plumb
