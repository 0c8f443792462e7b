#include "ops/batch_norm.h"

#include "kernels/gate.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/reshape.h"

namespace plumb {
namespace {

using Gradients = std::array<Tensor, 3>;  // by x, gamma and beta

// Of all dimensions but the channels, which stay with x's rank and layout.
Tensor channel_sum(const Tensor& x) { return x.rank() == 2 ? sum(x, {0}, true) : sum(x, {0, 2, 3}, true); }
Tensor channel_mean(const Tensor& x) { return x.rank() == 2 ? mean(x, {0}, true) : mean(x, {0, 2, 3}, true); }

Tensor as_channels(const Tensor& c, const TensorSpec& x) {
  const int64_t n = c.numel();
  return to(reshape(c, x.rank() == 2 ? Shape{1, n} : Shape{1, n, 1, 1}), x.layout);
}
Tensor as_parameter(const Tensor& x, const TensorSpec& parameter) { return reshape(to(x, Layout::kNchw), parameter.shape); }

// The gradients by ops, so that they have gradients themselves; in the dtype of gamma.
Gradients backward_by_ops(const Tensor& dy_, const Tensor& x_, const Tensor& gamma, const Tensor& mean_, const Tensor& spread,
                          const BatchNormParams& p) {
  const Tensor x = to(x_, gamma.dtype()), dy = to(dy_, gamma.dtype());
  const Tensor centred = sub(x, p.train ? channel_mean(x) : as_channels(mean_, x.spec()));
  const Tensor var = p.train ? channel_mean(square(centred)) : as_channels(spread, x.spec());
  const Tensor inv_std = pow(affine(var, 1, p.epsilon), -0.5);
  const Tensor x_hat = mul(centred, inv_std);
  const Tensor dbeta = channel_sum(dy), dgamma = channel_sum(mul(dy, x_hat));
  const Tensor scale = mul(as_channels(gamma, x.spec()), inv_std);
  Tensor inner = dy;
  if (p.train) {
    const double share = static_cast<double>(gamma.numel()) / static_cast<double>(x.numel());
    inner = sub(sub(dy, affine(dbeta, share, 0)), mul(x_hat, affine(dgamma, share, 0)));
  }
  return {to(mul(inner, scale), x_.dtype()), as_parameter(dgamma, gamma.spec()), as_parameter(dbeta, gamma.spec())};
}

Gradients backward(const Tensor& dy, const Tensor& x, const Tensor& gamma, const Tensor& mean, const Tensor& spread,
                   const BatchNormParams& p, bool needs_dx) {
  const TensorSpec& c = gamma.spec();
  if (needs_dx) {
    auto [dgamma, dbeta, dx] = run<BatchNormBackward>(p, {dy, x, gamma, mean, spread}, {c, c, x.spec()});
    return {std::move(dx), std::move(dgamma), std::move(dbeta)};
  }
  auto [dgamma, dbeta] = run<BatchNormBackward>(p, {dy, x, gamma, mean, spread}, {c, c});
  return {Tensor(), std::move(dgamma), std::move(dbeta)};
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
  PLUMB_CHECK(p.epsilon >= 0, "batch_norm: epsilon is {}; it must not be negative", static_cast<double>(p.epsilon));
  const int64_t channels = x.shape[1];
  PLUMB_CHECK(!p.train || x.numel() > channels,
              "batch_norm: training needs more than one value a channel, and x {} has {}; use a larger batch, or train = 0",
              x.shape, channels ? x.numel() / channels : 0);
  return {Shape{channels}, x.dtype == DType::kF64 ? DType::kF64 : DType::kF32};
}

Tensor batch_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& running_mean,
                  const Tensor& running_var, const BatchNormParams& p) {
  PLUMB_CHECK(x, "batch_norm: x is an empty tensor");
  const TensorSpec c = batch_norm_statistics(p, x.spec());
  for (const auto& [name, t] : {std::pair{"gamma", &gamma}, {"beta", &beta}, {"running_mean", &running_mean}, {"running_var", &running_var}}) {
    PLUMB_CHECK(*t && t->spec() == c, "batch_norm: {} is {}; for x {} it must be {}", name,
                *t ? to_string(t->spec()) : "an empty tensor", x.spec(), c);
  }
  Tensor y, mean, spread;
  if (p.train) {
    const TensorSpec out[3] = {x.spec(), c, c};
    std::tie(y, mean, spread) = std::tuple_cat(run<BatchNormForward>(p, {x, gamma, beta, running_mean, running_var}, out, Writes{3, 2}));
  } else {
    y = run<BatchNormForward>(p, {x, gamma, beta, running_mean, running_var}, x.spec());
    mean = running_mean.detached();
    spread = running_var.detached();
  }
  return record_joint<3>(std::move(y), {&x, &gamma, &beta},
                         [p, x = Kept(x), gamma = Kept(gamma), mean = Kept(mean), spread = Kept(spread)](
                             const Tensor& dy, const Needs<3>& needs) {
                           if (ctx.recording) return backward_by_ops(dy, x(), gamma(), mean(), spread(), p);
                           return backward(dy, x(), gamma(), mean(), spread(), p, needs[0]);
                         });
}

}  // namespace plumb
