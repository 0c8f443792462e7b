#include "ops/batch_norm.h"

#include <algorithm>
#include <cmath>

#include "dispatch/gate.h"
#include "ops/activation.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/reshape.h"

namespace plumb {
namespace {

using Gradients = std::array<Tensor, 4>;  // with respect to x, gamma, beta and the addend

// What backward needs of forward. spread is inv_std if the forward pass was in training, else the running variance.
struct Statistics {
  Tensor mean, spread;
};

// Reduces all dimensions except the channels; keeps x's rank and layout.
Tensor channel_sum(const Tensor& x) { return x.rank() == 2 ? sum(x, {0}, true) : sum(x, {0, 2, 3}, true); }
Tensor channel_mean(const Tensor& x) { return x.rank() == 2 ? mean(x, {0}, true) : mean(x, {0, 2, 3}, true); }

Tensor as_channels(const Tensor& c, const TensorSpec& x) {
  const int64_t n = c.numel();
  return to(reshape(c, x.rank() == 2 ? Shape{1, n} : Shape{1, n, 1, 1}), x.layout);
}
Tensor as_parameter(const Tensor& x, const TensorSpec& parameter) {
  return reshape(to(x, Layout::kNchw), parameter.shape);
}

// Computes the gradients by ops, so that they can be differentiated; in the dtype of gamma. There is a beta where there
// is an activation.
Gradients backward_by_ops(const Tensor& dy_, const Tensor& x_, const Tensor& gamma, const Tensor& beta,
                          const Statistics& used, const BatchNormParams& p) {
  const Tensor x = to(x_, gamma.dtype());
  Tensor dy = to(dy_, gamma.dtype());
  const Tensor centred = sub(x, p.train ? channel_mean(x) : as_channels(used.mean, x.spec()));
  const Tensor var = p.train ? channel_mean(square(centred)) : as_channels(used.spread, x.spec());
  const Tensor inv_std = pow(affine(var, 1, p.epsilon), -0.5);
  const Tensor x_hat = mul(centred, inv_std);
  if (beta) {
    const Tensor z = add(mul(x_hat, as_channels(gamma, x.spec())), as_channels(beta, x.spec()));
    dy = unary_backward(functors::Relu{}, dy, z.detached());
  }
  const Tensor dbeta = channel_sum(dy), dgamma = channel_sum(mul(dy, x_hat));
  const Tensor scale = mul(as_channels(gamma, x.spec()), inv_std);
  Tensor inner = dy;
  if (p.train) {
    const double share = static_cast<double>(gamma.numel()) / static_cast<double>(x.numel());
    inner = sub(sub(dy, dbeta * share), mul(x_hat, dgamma * share));
  }
  return {to(mul(inner, scale), x_.dtype()), as_parameter(dgamma, gamma.spec()), as_parameter(dbeta, gamma.spec()),
          dy_};
}

Gradients backward(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& beta, const Statistics& used,
                   const BatchNormParams& p, bool needs_dx) {
  const TensorSpec& c = gamma.spec();
  const auto run_on = [&](std::initializer_list<detail::Input> in) -> Gradients {
    if (needs_dx) {
      auto [dgamma, dbeta, dx] = run<BatchNormBackward>(p, in, {c, c, x.spec()});
      return {std::move(dx), std::move(dgamma), std::move(dbeta), dy};
    }
    auto [dgamma, dbeta] = run<BatchNormBackward>(p, in, {c, c});
    return {Tensor(), std::move(dgamma), std::move(dbeta), dy};
  };
  return beta ? run_on({dy, x, gamma, used.mean, used.spread, beta}) : run_on({dy, x, gamma, used.mean, used.spread});
}

Tensor with_gradients(Tensor y, const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& addend,
                      const Statistics& used, const BatchNormParams& params) {
  static constexpr char kName[] = "batch_norm";
  // A ReLU's gradient is computed with that of what it follows, from what that has anyway; behind an addend it is not.
  const bool has_relu = params.activation == Activation::kRelu && !addend;
  BatchNormParams p = params;
  if (!has_relu) p.activation = Activation::kNone;  // which has an edge of its own
  const Tensor z = record_joint<4>(
      std::move(y), {&x, &gamma, &beta, &addend},
      [p, x = SavedTensor(x, kName), gamma = SavedTensor(gamma, kName),
       beta = SavedTensor(has_relu ? beta : Tensor(), kName), mean = SavedTensor(used.mean, kName),
       spread = SavedTensor(used.spread, kName)](const Tensor& dy, const Needs<4>& needs) -> Gradients {
        if (!needs[0] && !needs[1] && !needs[2]) return {Tensor(), Tensor(), Tensor(), dy};
        const Statistics kept{mean(), spread()};
        if (detail::ctx.recording) return backward_by_ops(dy, x(), gamma(), beta(), kept, p);
        return backward(dy, x(), gamma(), beta(), kept, p, needs[0]);
      },
      kName);
  return has_relu ? z : detail::record_activation(z, params.activation);
}

void check_parameter(const char* name, const Tensor& t, const TensorSpec& x, const TensorSpec& expected) {
  PLUMB_CHECK(t && t.spec() == expected, "batch_norm: {} is {}; for x {} it must be {}", name,
              t ? to_string(t.spec()) : "an empty tensor", x, expected);
}

}  // namespace

BatchNormParams batch_norm_defaults(Convention convention, bool train) {
  switch (convention) {
    case Convention::kPyTorch: return {1e-5, 0.1, 1, train};
    case Convention::kKeras: return {1e-3, 0.01, 0, train};
    case Convention::kTensorFlow1: return {1e-3, 0.01, 1, train};
  }
  fail("batch_norm: convention {} is unknown", static_cast<int>(convention));
}

TensorSpec batch_norm_statistics(const BatchNormParams& p, const TensorSpec& x) {
  detail::check_floating("batch_norm", x);
  PLUMB_CHECK(x.rank() == 2 || x.rank() == 4, "batch_norm: x is {}; it must be (N, C) or (N, C, H, W): reshape it", x);
  PLUMB_CHECK(p.epsilon >= 0 && std::isfinite(p.epsilon), "batch_norm: epsilon is {}; it must be a number from 0 on",
              static_cast<double>(p.epsilon));
  PLUMB_CHECK(p.momentum >= 0 && p.momentum <= 1,
              "batch_norm: momentum is {}; it is the share of the batch, from 0 to 1", static_cast<double>(p.momentum));
  const int64_t channels = x.shape[1];
  PLUMB_CHECK(
      !p.train || x.numel() > channels,
      "batch_norm: training needs more than one value a channel, and x {} has {}; use a larger batch, or train = 0",
      x.shape, channels ? x.numel() / channels : 0);
  return {Shape{channels}, x.dtype == DType::kF64 ? DType::kF64 : DType::kF32};
}

Tensor batch_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& running_mean,
                  const Tensor& running_var, const BatchNormParams& p, const Tensor& addend) {
  PLUMB_CHECK(x, "batch_norm: x is an empty tensor");
  detail::check_activation("batch_norm", p.activation);
  const TensorSpec c = batch_norm_statistics(p, x.spec());
  check_parameter("gamma", gamma, x.spec(), c);
  check_parameter("beta", beta, x.spec(), c);
  check_parameter("running_mean", running_mean, x.spec(), c);
  check_parameter("running_var", running_var, x.spec(), c);
  PLUMB_CHECK(!addend || addend.spec() == x.spec(),
              "batch_norm: the addend is {} and x is {}; they must be of one spec", addend.spec(), x.spec());
  if (p.train) {
    const detail::Value* roots[6] = {};
    for (size_t i = 0; const Tensor* t : {&x, &gamma, &beta, &running_mean, &running_var, addend ? &addend : &x})
      roots[i++] = t->value->root();
    for (const size_t written : {3, 4}) {
      PLUMB_CHECK(std::count(roots, roots + 6, roots[written]) == 1,
                  "batch_norm: running_mean and running_var are written to; give them memory of their own");
    }
    const TensorSpec out[3] = {x.spec(), c, c};
    auto [y, mean, inv_std] =
        addend ? run<BatchNormForward>(p, {x, gamma, beta, running_mean, running_var, addend}, out, Writes{3, 2})
               : run<BatchNormForward>(p, {x, gamma, beta, running_mean, running_var}, out, Writes{3, 2});
    return with_gradients(std::move(y), x, gamma, beta, addend, {mean, inv_std}, p);
  }
  Tensor y = addend ? run<BatchNormForward>(p, {x, gamma, beta, running_mean, running_var, addend}, x.spec())
                    : run<BatchNormForward>(p, {x, gamma, beta, running_mean, running_var}, x.spec());
  return with_gradients(std::move(y), x, gamma, beta, addend, {running_mean.detached(), running_var.detached()}, p);
}

}  // namespace plumb
