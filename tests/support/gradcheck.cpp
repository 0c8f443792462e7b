#include "tests/support/gradcheck.h"

#include <cmath>

#include "core/random.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/grad.h"
#include "ops/reduce.h"

namespace plumb::test {
namespace {

using testing::AssertionFailure;
using testing::AssertionResult;

using Direction = std::vector<std::vector<double>>;  // of each input as in memory; an empty one stays where it is

// Under sanitizers every element takes the same path through memory again, and the differences take minutes.
#ifdef PLUMB_SANITIZED
constexpr int64_t kMostSamples = 0, kMostDirections = 1;
#else
constexpr int64_t kMostSamples = 16, kMostDirections = 16;
#endif

std::vector<double> numbers_of(const Tensor& t) { return {t.data<double>().begin(), t.data<double>().end()}; }

// <f(x + h v) - f(x - h v), cotangent> / 2h for a direction v; subtracts first, so that equal elements cancel exactly.
double difference(const Function& f, std::span<const Tensor> x, const Direction& v, double step,
                  const std::vector<double>& cotangent) {
  const auto moved = [&](double by) {
    std::vector<Tensor> inputs(x.begin(), x.end());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (v[i].empty()) continue;
      std::vector<double> values = numbers_of(on_host(x[i]));
      for (size_t k = 0; k < values.size(); ++k) values[k] += by * v[i][k];
      inputs[i] = to(Tensor::from<double>(values, x[i].spec()), x[i].device()).require_grad();
    }
    return to_doubles(f(inputs));
  };
  const std::vector<double> above = moved(step), below = moved(-step);
  double sum = 0;
  for (size_t i = 0; i < above.size(); ++i) sum += (above[i] - below[i]) * cotangent[i];
  return sum / (2 * step);
}

// New leaves, so that a check does not change the caller's tensors.
std::vector<Tensor> fresh(std::span<const Tensor> inputs) {
  std::vector<Tensor> own;
  for (const Tensor& x : inputs) {
    own.push_back(x.detached());
    if (x.requires_grad()) own.back().require_grad();
  }
  return own;
}

}  // namespace

AssertionResult gradcheck(const Function& f, std::span<const Tensor> inputs, const GradcheckOptions& options) {
  const std::vector<Tensor> x = fresh(inputs), wanted = leaves_of(x);
  for (const Tensor& t : wanted)
    PLUMB_CHECK(t.dtype() == DType::kF64, "gradcheck: an input is {}; it must be f64", t.spec());
  const Tensor y = f(x);
  const Tensor cotangent = random_tensor(y.spec(), options.seed);
  const TensorList gradients = grad(y, wanted, cotangent, {.create_graph = options.create_graph, .allow_unused = true});

  const std::vector<double> weights = to_doubles(cotangent);
  const auto agree = [&](double analytic, const Direction& v, const std::string& where) {
    const double numeric = difference(f, x, v, options.step, weights);
    if (std::abs(analytic - numeric) <= options.tolerance * std::max(1.0, std::abs(numeric)))
      return testing::AssertionSuccess();
    return AssertionFailure() << "the gradient " << where << " is " << analytic << ", by differences it is " << numeric;
  };

  std::vector<std::vector<double>> dx(x.size());  // as in memory
  for (size_t i = 0, next = 0; i < x.size(); ++i) {
    if (!x[i].requires_grad()) continue;
    const Tensor& g = gradients[next++];
    if (g && !(g.spec() == x[i].spec())) {
      return AssertionFailure() << "the gradient of input " << i << " is " << to_string(g.spec()) << ", the input is "
                                << to_string(x[i].spec());
    }
    dx[i] = g ? numbers_of(on_host(g)) : std::vector<double>(static_cast<size_t>(x[i].numel()));
    const int64_t n = x[i].numel(), samples = std::min(options.samples, kMostSamples), count = std::min(n, samples);
    for (int64_t k = 0; k < count; ++k) {
      const uint64_t drawn = Philox::block(options.seed, static_cast<uint64_t>(k), i)[0];
      const size_t at = static_cast<size_t>(n <= samples ? k : static_cast<int64_t>(drawn % static_cast<uint64_t>(n)));
      Direction v(x.size());
      v[i].resize(dx[i].size());
      v[i][at] = 1;
      const std::string where = "of input " + std::to_string(i) + " at element " + std::to_string(at) + " (in memory)";
      if (auto same = agree(dx[i][at], v, where); !same) return same;
    }
  }
  for (int64_t k = 0; k < std::min(options.directions, kMostDirections); ++k) {
    Direction v(x.size());
    double analytic = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (!x[i].requires_grad()) continue;
      v[i] = numbers_of(on_host(random_tensor(x[i].spec(), options.seed + static_cast<uint64_t>(k) * 100 + 50 + i)));
      for (size_t e = 0; e < v[i].size(); ++e) analytic += v[i][e] * dx[i][e];
    }
    if (auto same = agree(analytic, v, "along direction " + std::to_string(k) + " of all inputs"); !same) return same;
  }
  return testing::AssertionSuccess();
}

AssertionResult gradgradcheck(const Function& f, std::span<const Tensor> inputs, const GradcheckOptions& options) {
  std::vector<Tensor> all = fresh(inputs);
  Tensor dy;
  {
    const NoGrad no_grad;
    dy = random_tensor(f(all).spec(), options.seed + 1);
  }
  all.push_back(dy.require_grad());
  const size_t n = inputs.size();
  const Function first = [&f, &options, n](std::span<const Tensor> x) {  // <df/dx, c> for random c, over all x
    const TensorList gradients =
        grad(f(x.first(n)), leaves_of(x.first(n)), x[n], {.create_graph = true, .allow_unused = true});
    Tensor total;
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i]) continue;
      const Tensor part = sum(mul(gradients[i], random_tensor(gradients[i].spec(), options.seed + 2 + i)));
      total = total ? add(total, part) : part;
    }
    return total;
  };
  return gradcheck(first, all, options);
}

}  // namespace plumb::test
