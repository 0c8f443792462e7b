#include "tests/cases/op_case.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"

namespace plumb::test {
namespace {

std::vector<OpCase>& all() {
  static std::vector<OpCase> cases;
  return cases;
}

// Moves numbers outwards, so that different ones stay different: equal ones are kinks of their own to a maximum.
void avoid_kinks(std::vector<double>& values, const std::vector<double>& kinks) {
  for (double& v : values) {
    for (const double k : kinks) {
      if (std::abs(v - k) < kKinkDistance) v += v < k ? -kKinkDistance : kKinkDistance;
    }
  }
}

Tensor make_input(const CaseInput& input, const TensorSpec& spec, Numbers numbers, uint64_t seed) {
  if (!is_floating(spec.dtype)) {
    std::vector<int64_t> whole(static_cast<size_t>(spec.numel()));
    detail::fill_uniform(whole.data(), DType::kI64, spec.numel(), input.low, input.high, seed);
    return from_doubles(std::vector<double>(whole.begin(), whole.end()), spec);
  }
  if (numbers == Numbers::kSmallIntegers) return small_integers(spec, seed);
  std::vector<double> values =
      to_doubles(random_tensor(TensorSpec(spec.shape, DType::kF64), seed, input.low, input.high));
  avoid_kinks(values, input.kinks);
  return from_doubles(values, spec);
}

}  // namespace

std::vector<Tensor> make_inputs(const OpVariant& variant, DType dtype, Layout layout, Numbers numbers, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const CaseInput& input : variant.inputs) {
    TensorSpec spec = input.spec;
    const bool floating = is_floating(spec.dtype);
    if (floating) spec.dtype = input.wide && dtype != DType::kF64 ? DType::kF32 : dtype;
    if (input.activation && spec.rank() == 4) spec.layout = layout;
    inputs.push_back(make_input(input, spec, numbers, seed * 1000 + inputs.size()));
    if (floating && input.differentiable) inputs.back().require_grad();
  }
  return inputs;
}

std::vector<Layout> layouts_of(const OpVariant& variant) {
  const bool any = std::any_of(variant.inputs.begin(), variant.inputs.end(),
                               [](const CaseInput& i) { return i.activation && i.spec.rank() == 4; });
  return any ? std::vector<Layout>(std::begin(kPublicLayouts), std::end(kPublicLayouts))
             : std::vector<Layout>{Layout::kNchw};
}

const std::vector<OpCase>& op_cases() {
  std::sort(all().begin(), all().end(), [](const OpCase& a, const OpCase& b) { return a.name < b.name; });
  return all();
}

RegisterCase::RegisterCase(OpCase c) { all().push_back(std::move(c)); }

}  // namespace plumb::test
