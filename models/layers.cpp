#include "models/layers.h"

#include <atomic>
#include <optional>

#include "core/random.h"
#include "models/rounded.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/pool2d.h"
#include "ops/reshape.h"

namespace plumb::models {
namespace {

// Parameters are f32 and are rounded to the dtype of the activations where they are used.
Tensor in_dtype(const Tensor& parameter, const Tensor& x, const ForwardContext& context) {
  if (!parameter) return parameter;
  if (context.rounded && x.dtype() == DType::kBf16) {
    if (const Tensor kept = context.rounded->of(parameter)) return kept;
  }
  return to(parameter, x.dtype());
}
int64_t count(const Tensor& a, const Tensor& b) { return a.numel() + (b ? b.numel() : 0); }

std::atomic<uint64_t> next_of_all = 0;                // of threads that have called for no sequence of their own
thread_local std::optional<uint64_t> next_of_thread;  // set by seed_layers

uint64_t next_seed() { return next_of_thread ? (*next_of_thread)++ : next_of_all++; }

// Mixed, since a maker's parameters have seeds that follow its own.
ParameterMaker own_maker(Convention convention = Convention::kPyTorch) {
  const auto bits = Philox::block(next_seed(), 0, 0);
  return ParameterMaker(uint64_t{bits[0]} << 32 | bits[1], convention);
}

}  // namespace

void seed_layers(uint64_t seed) { next_of_thread = seed; }

Conv2d::Conv2d(int64_t in, int64_t out, int kernel, int stride, int padding, bool with_bias) {
  ParameterMaker maker = own_maker();
  *this = Conv2d(maker, "conv", in, out, kernel, stride, padding, with_bias);
}

Conv2d::Conv2d(ParameterMaker& maker, const std::string& name, int64_t in, int64_t out, int kernel, int stride,
               int padding, bool with_bias) {
  const int64_t area = int64_t{kernel} * kernel;
  weight = maker.weight(name + ".weight", Shape{out, in, kernel, kernel}, in * area, out * area);
  if (with_bias) bias = maker.bias(name + ".bias", out, in * area);
  params.stride = stride;
  params.padding = padding;
}

Tensor Conv2d::operator()(const Tensor& x, const ForwardContext& context, Activation activation) const {
  return (*this)(Padded{x}, context, activation);
}

Tensor Conv2d::operator()(const Padded& in, const ForwardContext& context, Activation activation) const {
  const Tensor& x = in.x;
  Conv2dParams p = params;
  p.activation = activation;
  for (int32_t& edge : p.padding) edge += static_cast<int32_t>(in.padding);
  Tensor y = conv2d(x, in_dtype(weight, x, context), in_dtype(bias, x, context), p);
  context.note("Conv2d", y, count(weight, bias));
  if (activation == Activation::kRelu) context.note("ReLU", y);
  return y;
}

Linear::Linear(int64_t in, int64_t out) {
  ParameterMaker maker = own_maker();
  *this = Linear(maker, "linear", in, out);
}

Linear::Linear(ParameterMaker& maker, const std::string& name, int64_t in, int64_t out) {
  weight = maker.weight(name + ".weight", Shape{out, in}, in, out);
  bias = maker.bias(name + ".bias", out, in);
}

Tensor Linear::operator()(const Tensor& x, const ForwardContext& context, Activation activation) const {
  Tensor y = linear(x, in_dtype(weight, x, context), in_dtype(bias, x, context), activation);
  context.note("Linear", y, count(weight, bias));
  if (activation == Activation::kRelu) context.note("ReLU", y);
  return y;
}

BatchNorm2d::BatchNorm2d(int64_t channels, Convention own) {
  ParameterMaker maker = own_maker(own);
  *this = BatchNorm2d(maker, "batch_norm", channels);
}

BatchNorm2d::BatchNorm2d(ParameterMaker& maker, const std::string& name, int64_t channels)
    : convention(maker.convention()) {
  weight = maker.constant(name + ".weight", Shape{channels}, 1);
  bias = maker.constant(name + ".bias", Shape{channels}, 0);
  running_mean = maker.buffer(name + ".running_mean", Shape{channels}, 0);
  running_var = maker.buffer(name + ".running_var", Shape{channels}, 1);
}

Tensor BatchNorm2d::operator()(const Tensor& x, const ForwardContext& context, Activation activation,
                               const Tensor& addend) const {
  BatchNormParams params = batch_norm_defaults(convention, context.train);
  params.activation = activation;
  const DType own = running_mean.dtype(), dtype = x.dtype() == DType::kF64 ? DType::kF64 : own;
  const Tensor mean = to(running_mean, dtype), var = to(running_var, dtype);
  Tensor y = batch_norm(x, to(weight, dtype), to(bias, dtype), mean, var, params, addend);
  if (context.train && dtype != own) {  // what was updated are copies
    Tensor(running_mean).copy_from(to(mean, own));
    Tensor(running_var).copy_from(to(var, own));
  }
  context.note("BatchNorm2d", y, count(weight, bias));
  if (addend) context.note("Add", y);
  if (activation == Activation::kRelu) context.note("ReLU", y);
  return y;
}

Tensor relu_layer(const Tensor& x, const ForwardContext& context) {
  Tensor y = relu(x);
  context.note("ReLU", y);
  return y;
}

Padded zero_pad(const Tensor& x, int64_t padding, const ForwardContext& context) {
  PLUMB_CHECK(padding >= 0, "zero_pad: {} zeros around {}; use 0 or more", padding, x.shape());
  context.note("ZeroPad2d", x.shape().with(2, x.shape()[2] + 2 * padding).with(3, x.shape()[3] + 2 * padding));
  return {x, padding};
}

Tensor max_pool(const Padded& in, int kernel, const ForwardContext& context) {
  Tensor y = max_pool2d(in.x, {.kernel = kernel, .padding = static_cast<int32_t>(in.padding)});
  context.note("MaxPool2d", y);
  return y;
}

Tensor max_pool(const Tensor& x, int kernel, const ForwardContext& context) {
  return max_pool(Padded{x}, kernel, context);
}

Tensor dropout_layer(const Tensor& x, double probability, const ForwardContext& context) {
  PLUMB_CHECK(!context.train || context.generator,
              "dropout: a training pass needs a generator for its masks; set ForwardContext::generator");
  Tensor y = context.train ? dropout(x, probability, *context.generator, true) : x;
  context.note("Dropout", y);
  return y;
}

Tensor flatten_layer(const Tensor& x, const ForwardContext& context) {
  Tensor y = flatten(x);
  context.note("Flatten", y);
  return y;
}

}  // namespace plumb::models
