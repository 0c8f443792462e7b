#include "ops/random.h"

#include "dispatch/gate.h"
#include "dispatch/random_fill.h"

namespace plumb {
namespace {

Tensor drawn(const char* name, const TensorSpec& spec, const detail::Distribution& d, uint64_t seed) {
  detail::refuse_in_capture(
      name, "draw the numbers before, and refill the tensor with copy_from; dropout draws anew in every run");
  return run<RandomFill>({d.first, d.range, d.kind, seed}, {}, spec);
}

}  // namespace

Tensor uniform(const TensorSpec& spec, double low, double high, uint64_t seed) {
  return drawn("uniform", spec, detail::uniform_distribution(spec.dtype, low, high), seed);
}

Tensor normal(const TensorSpec& spec, double mean, double deviation, uint64_t seed) {
  return drawn("normal", spec, detail::normal_distribution(spec.dtype, mean, deviation), seed);
}

}  // namespace plumb
