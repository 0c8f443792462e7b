#include <algorithm>

#include "bench/job.h"
#include "kernels/optimizer.h"

namespace plumb::bench {
namespace {

// One parameter of each problem's shape, with `states` states: {rate, step, w, states..., g}.
template <class K>
void add_rows(const char* op, const typename K::Params& params, int states, const TensorSpec& w,
              const std::string& problem) {
  std::vector<TensorSpec> in{TensorSpec(Shape{}, w.dtype), TensorSpec(Shape{}, DType::kI64)};
  for (int i = 0; i < states + 2; ++i) in.push_back(w);
  Job j = job<K>(params, in, {});
  j.updated_bytes = static_cast<size_t>(states + 1) * w.bytes();
  j.values = {0.1, 1};  // mean squares are positive
  add_memory_rows(Path(op, "update", w, problem), j);
}

void add_all(const TensorSpec& w, const std::string& problem) {
  add_rows<SgdUpdate>("sgd", SgdParams{}, 0, w, problem);
  SgdParams momentum{};
  momentum.momentum = 0.9;
  add_rows<SgdUpdate>("sgd_momentum", momentum, 1, w, problem);
  AdamParams adam{};
  adam.beta1 = 0.9, adam.beta2 = 0.999, adam.epsilon = 1e-8;
  add_rows<AdamUpdate>("adam", adam, 2, w, problem);
  RmsPropParams rmsprop{};
  rmsprop.rho = 0.99, rmsprop.epsilon = 1e-8;
  add_rows<RmsPropUpdate>("rmsprop", rmsprop, 1, w, problem);
}

// Weights of the networks' layers. Parameters are f32.
void add(const Axes& axes) {
  if (!std::ranges::count(axes.dtypes, DType::kF32)) return;
  for (const ConvProblem& c : axes.problems.conv2d) add_all(TensorSpec(c.w), c.name);
  for (const LinearProblem& l : axes.problems.linear) add_all(TensorSpec(Shape{l.out, l.in}), l.name);
}

const RowSource rows(&add);

}  // namespace
}  // namespace plumb::bench
