// What must hold for every op, checked on every case of tests/cases.
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>

#include "dispatch/policy.h"
#include "ops/elementwise.h"
#include "ops/grad.h"
#include "ops/reduce.h"
#include "tests/cases/op_case.h"
#include "tests/support/compare.h"
#include "tests/support/gradcheck.h"
#include "tests/support/kernel_check.h"

namespace plumb::test {
namespace {

// The output, and the gradients under a random (or whole) cotangent in the order of the inputs.
struct Results {
  Tensor y;
  TensorList dx;
};
Results run_case(const OpCase& c, const OpVariant& v, std::span<const Tensor> inputs,
                 Numbers numbers = Numbers::kReal) {
  Results r{v.run(inputs), {}};
  if (!c.differentiable) return r;
  const TensorSpec logical(r.y.shape(), r.y.dtype());
  const Tensor dy = numbers == Numbers::kReal ? random_tensor(logical, 99) : small_integers(logical, 99);
  r.dx = grad(r.y, leaves_of(inputs), converted(dy, dy.dtype(), r.y.layout()));
  return r;
}

std::vector<Tensor> in_f64(std::span<const Tensor> inputs) {
  std::vector<Tensor> wide;
  for (const Tensor& x : inputs) {
    wide.push_back(is_floating(x.dtype()) ? converted(x, DType::kF64, x.layout()) : x.detached());
    if (x.requires_grad()) wide.back().require_grad();
  }
  return wide;
}

// An element of dx is a sum of as many terms as there are products that the element of x takes part in.
double terms_of_gradient(const OpVariant& v, const Tensor& y, const Tensor& dx) {
  return std::max(1.0,
                  v.terms * static_cast<double>(y.numel()) / static_cast<double>(std::max<int64_t>(1, dx.numel())));
}

// A case, printed by its name.
struct NamedCase {
  const OpCase* op;
  const OpCase& operator*() const { return *op; }
  const OpCase* operator->() const { return op; }
  friend void PrintTo(const NamedCase& c, std::ostream* out) { *out << c->name; }
};

class OpCases : public testing::TestWithParam<NamedCase> {
 protected:
  template <class Body>
  void for_each_variant(const Body& body) {
    for (const OpVariant& v : GetParam()->variants) {
      for (const Layout layout : layouts_of(v)) {
        SCOPED_TRACE(v.name + " " + to_string(layout));
        body(v, layout);
      }
    }
  }
};

class DifferentiableOpCases : public OpCases {};
class TwiceDifferentiableOpCases : public OpCases {};
class DeterministicOpCases : public OpCases {};

TEST_P(OpCases, EveryKernelMatchesTheReferenceAndStaysInItsMemory) {
  const OpCase& c = *GetParam();
  KernelCheck check(c.tolerance);
  for_each_variant([&](const OpVariant& v, Layout layout) {
    for (const DType dtype : c.dtypes) run_case(c, v, make_inputs(v, dtype, layout));
  });
  EXPECT_FALSE(check.checked().empty());
}

TEST_P(OpCases, ForwardAndBackwardMatchF64) {
  const OpCase& c = *GetParam();
  for_each_variant([&](const OpVariant& v, Layout layout) {
    for (const DType dtype : c.dtypes) {
      SCOPED_TRACE(to_string(dtype));
      const std::vector<Tensor> x = make_inputs(v, dtype, layout);
      // Winograd amplifies rounding; its kernels are held against the reference by the test above.
      const PolicyScope direct({.algorithm = algorithm_id("direct")});

      const Results got = run_case(c, v, x), expected = run_case(c, v, in_f64(x));

      const auto bound = [&](double terms) {
        return c.tolerance * (2 * unit_roundoff(dtype) + std::sqrt(terms) * unit_roundoff(DType::kF32));
      };
      EXPECT_TRUE(close(got.y, expected.y, bound(v.terms))) << "forward";
      for (size_t i = 0; i < got.dx.size(); ++i) {
        EXPECT_TRUE(close(got.dx[i], expected.dx[i], bound(terms_of_gradient(v, got.y, got.dx[i]))))
            << "gradient " << i;
      }
    }
  });
}

TEST_P(OpCases, LayoutsAgree) {
  const OpCase& c = *GetParam();
  const Numbers numbers = c.exact ? Numbers::kSmallIntegers : Numbers::kReal;
  const PolicyScope direct({.algorithm = algorithm_id("direct")});
  for (const OpVariant& v : c.variants) {
    const Results expected = run_case(c, v, make_inputs(v, DType::kF32, Layout::kNchw, numbers), numbers);
    for (const Layout layout : layouts_of(v)) {
      SCOPED_TRACE(v.name + " " + to_string(layout));

      const Results got = run_case(c, v, make_inputs(v, DType::kF32, layout, numbers), numbers);

      const auto agree = [&](const Tensor& a, const Tensor& b, double terms) {
        return c.exact ? equal(a, b) : close(a, b, c.tolerance * (1 + std::sqrt(terms)) * unit_roundoff(DType::kF32));
      };
      EXPECT_TRUE(agree(got.y, expected.y, v.terms)) << "forward";
      for (size_t i = 0; i < got.dx.size(); ++i) {
        EXPECT_TRUE(agree(got.dx[i], expected.dx[i], terms_of_gradient(v, got.y, got.dx[i]))) << "gradient " << i;
      }
    }
  }
}

// In f64 the layouts are covered by the tests above, which hold them against each other and against f32.
TEST_P(DifferentiableOpCases, GradientsMatchDifferences) {
  const OpCase& c = *GetParam();
  for (const OpVariant& v : c.variants) {
    SCOPED_TRACE(v.name);
    const std::vector<Tensor> x = make_inputs(v, DType::kF64, Layout::kNchw);
    EXPECT_TRUE(gradcheck(v.run, x));
    if (c.twice_differentiable) {
      EXPECT_TRUE(gradcheck(v.run, x, {.samples = 1, .create_graph = true})) << "under create_graph";
    }
  }
}

TEST_P(TwiceDifferentiableOpCases, SecondDerivativesMatchDifferences) {
  for_each_variant([&](const OpVariant& v, Layout layout) {
    EXPECT_TRUE(gradgradcheck(v.run, make_inputs(v, DType::kF64, layout), {.samples = 1}));
  });
}

// What is linear in a tensor is its gradient with respect to it, times it.
TEST_P(TwiceDifferentiableOpCases, SecondDerivativesHaveGradientsOfWhatTheyAreLinearIn) {
  const auto weighted = [](std::span<const Tensor> all, std::span<const Tensor> weights) {
    Tensor total;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!all[i]) continue;
      const Tensor part = sum(all[i] * weights[i]);
      total = total ? total + part : part;
    }
    return total;
  };
  for_each_variant([&](const OpVariant& v, Layout layout) {
    const GradOptions graph{.create_graph = true, .allow_unused = true};
    const std::vector<Tensor> inputs = make_inputs(v, DType::kF64, layout), x = leaves_of(inputs);
    const Tensor y = v.run(inputs), dy = random_tensor(y.spec(), 1).require_grad();
    std::vector<Tensor> c, fixed;
    for (size_t i = 0; i < x.size(); ++i) {
      c.push_back(random_tensor(x[i].spec(), 2 + i).require_grad());
      fixed.push_back(random_tensor(x[i].spec(), 100 + i));
    }
    const Tensor first = weighted(grad(y, x, dy, graph), c);
    if (!first || !first.requires_grad()) return;
    const Tensor second = weighted(grad(first, x, graph), fixed);
    if (!second) return;  // y is linear in x
    if (!second.requires_grad()) {
      EXPECT_EQ(second.item(), 0);
      return;
    }

    const Tensor of_dy = grad(second, {dy}, {.retain_graph = true, .allow_unused = true})[0];
    const TensorList of_c = grad(second, c, {.allow_unused = true});

    const double whole = second.item();
    ASSERT_TRUE(of_dy) << "with respect to dy";
    EXPECT_NEAR(sum(of_dy * dy).item(), whole, 1e-9 * std::max(1.0, std::abs(whole))) << "with respect to dy";
    const Tensor by_c = weighted(of_c, c);
    ASSERT_TRUE(by_c) << "with respect to what weights the first derivative";
    EXPECT_NEAR(by_c.item(), whole, 1e-9 * std::max(1.0, std::abs(whole)))
        << "with respect to what weights the first derivative";
  });
}

TEST_P(DeterministicOpCases, TwiceGivesTheSameBits) {
  const OpCase& c = *GetParam();
  for_each_variant([&](const OpVariant& v, Layout layout) {
    const std::vector<Tensor> x = make_inputs(v, DType::kF32, layout);

    const Results first = run_case(c, v, x), second = run_case(c, v, x);

    EXPECT_TRUE(bitwise_equal(second.y, first.y)) << "forward";
    for (size_t i = 0; i < first.dx.size(); ++i)
      EXPECT_TRUE(bitwise_equal(second.dx[i], first.dx[i])) << "gradient " << i;
  });
}

auto every_case(bool (*holds)(const OpCase&) = [](const OpCase&) { return true; }) {
  std::vector<NamedCase> cases;
  for (const OpCase& c : op_cases()) {
    if (holds(c)) cases.push_back({&c});
  }
  return testing::ValuesIn(cases);
}
std::string name_of(const testing::TestParamInfo<NamedCase>& info) {
  std::string name = info.param->name;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char ch) { return !std::isalnum(ch); }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(, OpCases, every_case(), name_of);
INSTANTIATE_TEST_SUITE_P(, DifferentiableOpCases, every_case([](auto& c) { return c.differentiable; }), name_of);
INSTANTIATE_TEST_SUITE_P(, TwiceDifferentiableOpCases,
                         every_case([](auto& c) { return c.differentiable && c.twice_differentiable; }), name_of);
INSTANTIATE_TEST_SUITE_P(, DeterministicOpCases, every_case([](auto& c) { return c.deterministic; }), name_of);

}  // namespace
}  // namespace plumb::test
