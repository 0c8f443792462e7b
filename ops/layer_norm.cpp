#include "ops/layer_norm.h"

#include <cmath>

#include "dispatch/gate.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/reduce.h"

namespace plumb {
namespace {

constexpr char kName[] = "layer_norm";

using Gradients = std::array<Tensor, 3>;  // with respect to x, w and b

struct Statistics {
  Tensor mean, inv_std;
};

Dims normalised_dims(int count) {
  std::vector<int> dims;
  for (int d = -count; d < 0; ++d) dims.push_back(d);
  return dims;
}

// Computes the gradients by ops, so that they can be differentiated; in the dtype of the statistics.
Gradients backward_by_ops(const Tensor& dy_, const Tensor& x_, const Tensor& w, DType wide, const LayerNormParams& p,
                          const Needs<3>& needs) {
  const Dims dims = normalised_dims(p.dims);
  const Tensor x = to(x_, wide), dy = to(dy_, wide);
  const Tensor centred = sub(x, mean(x, dims, true));
  const Tensor inv_std = pow(affine(mean(square(centred), dims, true), 1, p.epsilon), -0.5);
  const Tensor x_hat = mul(centred, inv_std);
  Gradients d;
  if (needs[0]) {
    const Tensor g = w ? mul(dy, w) : dy;
    const Tensor of_statistics = add(mean(g, dims, true), mul(x_hat, mean(mul(g, x_hat), dims, true)));
    d[0] = to(mul(sub(g, of_statistics), inv_std), x_.dtype());
  }
  if (needs[1]) d[1] = sum_to(mul(dy, x_hat), w.spec());
  if (needs[2]) d[2] = sum_to(dy, w.spec());
  return d;
}

Gradients backward(const Tensor& dy, const Tensor& x, const Tensor& w, const Statistics& s, const LayerNormParams& p,
                   const Needs<3>& needs) {
  using Kind = LayerNormBackward;
  if (!w) return {run<Kind>(p, {dy, x, s.mean, s.inv_std}, x.spec()), Tensor(), Tensor()};
  if (!needs[1] && !needs[2]) return {run<Kind>(p, {dy, x, s.mean, s.inv_std, w}, x.spec()), Tensor(), Tensor()};
  if (!needs[0]) {
    auto [dw, db] = run<Kind>(p, {dy, x, s.mean, s.inv_std, w}, {w.spec(), w.spec()});
    return {Tensor(), std::move(dw), std::move(db)};
  }
  auto [dw, db, dx] = run<Kind>(p, {dy, x, s.mean, s.inv_std, w}, {w.spec(), w.spec(), x.spec()});
  return {std::move(dx), std::move(dw), std::move(db)};
}

void check_parameter(const char* name, const Tensor& t, const TensorSpec& x, const TensorSpec& expected) {
  PLUMB_CHECK(!t || t.spec() == expected, "layer_norm: {} is {}; for x {} it must be {}", name, t.spec(), x, expected);
}

// Of row-major x. There is no b without w.
Tensor forward(const Tensor& x, const Tensor& w, const Tensor& b, const LayerNormParams& p) {
  const TensorSpec of_rows = layer_norm_statistics(p, x.spec()), out[3] = {x.spec(), of_rows, of_rows};
  using Kind = LayerNormForward;
  auto [y, mean, inv_std] = b ? run<Kind>(p, {x, w, b}, out) : w ? run<Kind>(p, {x, w}, out) : run<Kind>(p, {x}, out);
  return record_joint<3>(
      std::move(y), {&x, &w, &b},
      [p, x = SavedTensor(x, kName), w = SavedTensor(w, kName), mean = SavedTensor(mean, kName),
       inv_std = SavedTensor(inv_std, kName)](const Tensor& dy, const Needs<3>& needs) {
        if (detail::ctx.recording) return backward_by_ops(dy, x(), w(), mean().dtype(), p, needs);
        return backward(dy, x(), w(), {mean(), inv_std()}, p, needs);
      },
      kName);
}

Tensor in_any_layout(const Tensor& x, const Tensor& w, const Tensor& b, const LayerNormParams& p) {
  if (x.layout() == Layout::kNchw) return forward(x, w, b, p);
  return to(forward(to(x, Layout::kNchw), w, b, p), x.layout());
}

}  // namespace

TensorSpec layer_norm_statistics(const LayerNormParams& p, const TensorSpec& x) {
  detail::check_floating(kName, x);
  PLUMB_CHECK(p.epsilon >= 0 && std::isfinite(p.epsilon), "layer_norm: epsilon is {}; it must be a number from 0 on",
              static_cast<double>(p.epsilon));
  PLUMB_CHECK(p.dims >= 1 && p.dims <= x.rank(),
              "layer_norm: of x {} the last {} dimensions are to be normalised; it has {}", x.shape, p.dims, x.rank());
  Shape of_rows = x.shape;
  for (int d = x.rank() - p.dims; d < x.rank(); ++d) {
    PLUMB_CHECK(x.shape[d] > 0, "layer_norm: x {} has no elements along dimension {} to take the mean of", x.shape, d);
    of_rows = of_rows.with(d, 1);
  }
  return {of_rows, x.dtype == DType::kF64 ? DType::kF64 : DType::kF32};
}

Tensor layer_norm(const Tensor& x, const Tensor& w, const Tensor& b, double epsilon) {
  PLUMB_CHECK(x, "layer_norm: x is an empty tensor");
  PLUMB_CHECK(w || b, "layer_norm: w and b are empty tensors; say over how many dimensions: layer_norm(x, 1)");
  const LayerNormParams p{epsilon, (w ? w : b).rank()};
  const DType wide = layer_norm_statistics(p, x.spec()).dtype;
  Shape normalised = (w ? w : b).shape();
  for (int d = 0; d < p.dims; ++d) normalised = normalised.with(d, x.shape()[x.rank() - p.dims + d]);
  check_parameter("w", w, x.spec(), {normalised, wide});
  check_parameter("b", b, x.spec(), {normalised, wide});
  return in_any_layout(x, w ? w : ones_like(b.detached()), b, p);
}

Tensor layer_norm(const Tensor& x, int dims, double epsilon) {
  PLUMB_CHECK(x, "layer_norm: x is an empty tensor");
  const LayerNormParams p{epsilon, dims};
  layer_norm_statistics(p, x.spec());
  return in_any_layout(x, Tensor(), Tensor(), p);
}

}  // namespace plumb
