// Pooling in nchw by planes side by side. Rows of planes are short, and windows that overlap or reach over an edge
// leave vectors of columns half empty. So what a few rows of the result need of many planes is transposed to (rows,
// columns, planes), where all vectors are whole, pooled there by the walk of that layout, and what comes of it
// transposed back.
#pragma once

#include <memory>
#include <string>

#include "kernels/cpu/pooling/pool2d_plan.h"

namespace plumb::cpu::pool {

/// A walk over rows of the outputs, which stand one behind the other in them.
using Walk = void (*)(const Plan&, const Launch&, int64_t begin, int64_t end);

/// `walk` is that over (rows, columns, planes). Operands with the height and width of x are `like_x`, inputs before
/// outputs.
struct PlanesWork {
  Walk walk;
  bool is_backward;
  std::vector<TensorSpec> in, out;
  std::vector<bool> like_x;
};
/// Null where there are fewer planes than stand side by side, or rows are so long that vectors of columns are as good.
std::unique_ptr<Kernel> planes_kernel(std::string name, const Plan& g, const PlanesWork& work, int threads);

}  // namespace plumb::cpu::pool
