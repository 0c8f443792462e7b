#include "ops/elementwise.h"

#include "bench/job.h"
#include "kernels/elementwise.h"

namespace plumb::bench {

using detail::Binary;
using detail::Stage;
namespace {

// Random numbers for functions that want positive ones.
void choose_range(Job& j, std::string_view op) {
  for (const std::string_view positive : {"log", "sqrt", "reciprocal", "pow_scalar", "pow", "div"}) {
    if (op == positive) j.values = {0.5, 1.5};
  }
}

void add_rows(const char* op, const char* direction, const TensorSpec& x, const std::string& problem, Job j) {
  choose_range(j, op);
  add_memory_rows(Path(op, direction, x, problem), j);
}

void add_all(const TensorSpec& x, const std::string& problem) {
  UnaryFunctors::for_each([&]<class F>() {
    add_rows(F::kName, "forward", x, problem, job<detail::Unary<F, Stage::kForward>>(F{}, {x}, {x}));
    add_rows(F::kName, "backward", x, problem, job<detail::Unary<F, Stage::kBackward>>(F{}, {x, x}, {x}));
  });
  BinaryFunctors::for_each([&]<class F>() {
    add_rows(F::kName, "forward", x, problem, job<Binary<F, Stage::kForward>>(F{}, {x, x}, {x}));
    const bool is_linear = std::is_same_v<F, functors::Add> || std::is_same_v<F, functors::Sub>;
    if (is_linear) return;  // their gradients are dy itself, or its negative
    add_rows(F::kName, "backward_a", x, problem, job<Binary<F, Stage::kBackward>>(F{}, {x, x, x}, {x}));
    add_rows(F::kName, "backward_b", x, problem, job<Binary<F, Stage::kBackwardB>>(F{}, {x, x, x}, {x}));
  });
}

const RowSource rows(&add_all);

}  // namespace
}  // namespace plumb::bench
