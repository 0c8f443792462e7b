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

// Under sanitizers every element takes the same path through memory again, and the differences take minutes.
#ifdef PLUMB_SANITIZED
constexpr int64_t kMostSamples = 1;
#else
constexpr int64_t kMostSamples = 16;
#endif

// <f(x + h) - f(x - h), cotangent> / 2h for one element; subtracts first, so that equal elements cancel exactly.
double difference(const Function& f, std::vector<Tensor> inputs, size_t input, int64_t element, double step,
                  const std::vector<double>& cotangent) {
  const Tensor x = on_host(inputs[input]);
  const auto moved = [&](double by) {
    std::vector<double> values(x.data<double>().begin(), x.data<double>().end());
    values[static_cast<size_t>(element)] += by;
    inputs[input] = to(Tensor::from<double>(values, x.spec()), inputs[input].device()).require_grad();
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

  size_t next = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!x[i].requires_grad()) continue;
    const Tensor& dx = gradients[next++];
    if (dx && !(dx.spec() == x[i].spec())) {
      return AssertionFailure() << "the gradient of input " << i << " is " << to_string(dx.spec()) << ", the input is "
                                << to_string(x[i].spec());
    }
    const Tensor dx_here = dx ? on_host(dx) : Tensor();
    const int64_t n = x[i].numel(), samples = std::min(options.samples, kMostSamples), count = std::min(n, samples);
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = n <= samples
                             ? k
                             : static_cast<int64_t>(Philox::block(options.seed, static_cast<uint64_t>(k), i)[0] %
                                                    static_cast<uint64_t>(n));
      const double analytic = dx ? dx_here.data<double>()[static_cast<size_t>(at)] : 0;
      const double numeric = difference(f, x, i, at, options.step, to_doubles(cotangent));
      if (!(std::abs(analytic - numeric) <= options.tolerance * std::max(1.0, std::abs(numeric)))) {
        return AssertionFailure() << "the gradient of input " << i << " at element " << at << " (in memory) is "
                                  << analytic << ", by differences it is " << numeric;
      }
    }
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
