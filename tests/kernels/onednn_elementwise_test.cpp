// oneDNN's elementwise primitives are offered only where they are as right as our own functions, number by number:
// the cases of the ops look at errors beside the largest element, and at no infinity and no NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "dispatch/kernel_cache.h"
#include "kernels/elementwise.h"
#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"
#include "tests/support/tensors.h"

namespace plumb::test {
namespace {

using detail::Stage;

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

// From -12 to 12, and what functions treat in ways of their own.
std::vector<double> arguments() {
  std::vector<double> x = {kNan, kInfinity, -kInfinity};
  for (const double v : {0.0, 1e-30, 1e-10, 1e-4, 1.0, 20.0, 87.0, 90.0, 104.0, 1e4, 1e10, 1e19, 1e25, 3e38}) {
    x.push_back(v);
    x.push_back(-v);
  }
  for (double v = -12; v <= 12; v += 1.0 / 16) x.push_back(v + 1e-3);
  return x;
}
constexpr double kFactors[] = {1.0, -2.5, 0.0, 1e30, kInfinity, kNan};

// Every argument with every one of the others, as operands of one length.
std::vector<std::vector<double>> pairs(const std::vector<double>& a, std::span<const double> b) {
  std::vector<std::vector<double>> both(2);
  for (const double v : b) {
    for (const double u : a) {
      both[0].push_back(v);
      both[1].push_back(u);
    }
  }
  return both;
}

Tensor rounded(const std::vector<double>& values, DType t) {
  return from_doubles(values, TensorSpec(Shape{static_cast<int64_t>(values.size())}, t));
}

std::vector<double> run(const Kernel& kernel, std::span<const Tensor> inputs, DType t) {
  Tensor y = Tensor::empty(TensorSpec(inputs[0].shape(), t));
  std::vector<void*> in;
  for (const Tensor& x : inputs) in.push_back(x.value->data);
  std::vector<std::byte> workspace(kernel.info().workspace_bytes + 64);
  void* out = y.value->data;
  kernel.run({in.data(), &out, workspace.data()});
  return to_doubles(y);
}

// How a vendor's number differs from what it must be; own is our kernel's.
bool is_right(double got, double own, double expected, DType t) {
  if (!std::isfinite(got) || !std::isfinite(own)) return got == own || (std::isnan(got) && std::isnan(own));
  const double unit = unit_roundoff(t), allowed = 8 * unit_roundoff(DType::kF32) + 2 * unit;
  return std::abs(got - expected) <=
         allowed * std::abs(expected) + 4 * std::abs(own - expected) + 1e-35;  // or as good as 0
}

template <class K>
void check(const typename K::Params& params, const std::vector<std::vector<double>>& operands, int& checked) {
  for (const DType t : {DType::kF32, DType::kBf16}) {
    std::vector<Tensor> in, wide;
    for (const std::vector<double>& values : operands) {
      in.push_back(rounded(values, t));
      wide.push_back(rounded(to_doubles(in.back()), DType::kF64));
    }
    const std::vector<TensorSpec> specs(in.size(), in[0].spec()), wide_specs(in.size(), wide[0].spec());
    Candidates candidates, in_f64;
    detail::kind_of<K>.offer(&params, specs, {&specs[0], 1}, Policy{}, 1, candidates);
    detail::kind_of<K>.offer(&params, wide_specs, {&wide_specs[0], 1}, Policy{}, 1, in_f64);
    const auto expected = run(*in_f64.all().back().make(), wide, DType::kF64);
    const auto ours = std::ranges::find(candidates.all(), Provider::kPlumbline, &Candidates::Candidate::provider);
    const auto own = run(*ours->make(), in, t);
    for (const auto& c : candidates.all()) {
      if (c.provider != Provider::kOneDnn) continue;
      const auto kernel = c.make();
      if (!kernel) continue;
      ++checked;
      const auto got = run(*kernel, in, t);
      for (size_t i = 0, wrong = 0; i < got.size() && wrong < 3; ++i) {
        if (is_right(got[i], own[i], expected[i], t)) continue;
        ++wrong;
        std::string of;
        for (const auto& x : wide) of += " " + std::to_string(to_doubles(x)[i]);
        ADD_FAILURE() << K::kName << " in " << to_string(t) << " by " << kernel->info().name << " of" << of << " is "
                      << got[i] << ", ours " << own[i] << ", in f64 " << expected[i];
      }
    }
  }
}

// With attributes that are no algorithm's own, and with those of which oneDNN makes a special case.
template <class F>
std::vector<F> with_attributes() {
  if constexpr (requires { F{1.7, -0.3}; }) {
    return {F{1.7, -0.3}, F{0, 1}, F{1, 0}};
  } else if constexpr (requires { F{1.7}; }) {
    return {F{1.7}, F{0}, F{1}, F{2}, F{3}, F{0.5}, F{-0.5}, F{-1}};
  } else {
    return {F{}};
  }
}

template <class F>
void check_stages(const F& f, int& checked) {
  std::vector<double> x = arguments();
  check<detail::Unary<F, Stage::kForward>>(f, {x}, checked);
  if (F::kKeeps == Keeps::kOutput) {
    for (double& v : x) v = f.forward(v);
  }
  check<detail::Unary<F, Stage::kBackward>>(f, pairs(x, kFactors), checked);
}

TEST(OneDnnElementwise, FunctionsOfOneNumberAreAsRightAsOurs) {
  int checked = 0;
  UnaryFunctors::for_each([&]<class F>() {
    for (const F& f : with_attributes<F>()) check_stages(f, checked);
  });
  EXPECT_GE(checked, has_avx512() ? 34 : 17);  // of two dtypes, or of f32
}

TEST(OneDnnElementwise, FunctionsOfTwoNumbersAreAsRightAsOurs) {
  int checked = 0;
  const std::vector<double> x = arguments();
  BinaryFunctors::for_each([&]<class F>() {
    const auto two = pairs(x, x);
    check<detail::Binary<F, Stage::kForward>>(F{}, two, checked);
    const std::vector<double> dy(two[0].size(), -2.5);
    const std::vector<std::vector<double>> three{dy, two[0], two[1]};
    check<detail::Binary<F, Stage::kBackward>>(F{}, three, checked);
    check<detail::Binary<F, Stage::kBackwardB>>(F{}, three, checked);
  });
  EXPECT_GE(checked, has_avx512() ? 8 : 4);
}

}  // namespace
}  // namespace plumb::test
