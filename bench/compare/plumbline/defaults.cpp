#include "bench/compare/plumbline/defaults.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/threads.h"
#include "models/layers.h"
#include "ops/batch_norm.h"
#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "ops/matmul.h"
#include "optim/adam.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"

namespace plumb::compare {
namespace {

using nlohmann::json;

constexpr int kLayers = 64;  // so that the largest of their biases is near the bound

double largest(const Tensor& x) {
  double most = 0;
  for (const float v : x.data<float>()) most = std::max(most, std::abs(static_cast<double>(v)));
  return most;
}

double mean_square(const Tensor& x) {
  double sum = 0;
  for (const float v : x.data<float>()) sum += static_cast<double>(v) * v;
  return sum / static_cast<double>(x.numel());
}

// Of layers that `make` makes: bounds and deviation in units of 1 / sqrt(fan_in).
template <class F>
void add_layer(json& found, const std::string& name, int64_t fan_in, const F& make) {
  double weight = 0, bias = 0, variance = 0;
  for (int i = 0; i < kLayers; ++i) {
    const auto layer = make(name + std::to_string(i));
    weight = std::max(weight, largest(layer.weight));
    bias = std::max(bias, largest(layer.bias));
    variance += mean_square(layer.weight) / kLayers;
  }
  const double unit = std::sqrt(static_cast<double>(fan_in));
  found[name + "_weight_bound"] = weight * unit;
  found[name + "_weight_deviation"] = std::sqrt(variance) * unit;
  found[name + "_bias_bound"] = bias * unit;
}

void add_layers(json& found, Convention convention) {
  models::ParameterMaker maker(1, convention);
  add_layer(found, "conv", 128 * 9, [&](const std::string& n) { return models::Conv2d(maker, n, 128, 32, 3); });
  add_layer(found, "linear", 512, [&](const std::string& n) { return models::Linear(maker, n, 512, 128); });
}

// The name of the expected number that a step comes to.
std::string nearest(double step, std::initializer_list<std::pair<const char*, double>> expected) {
  for (const auto& [name, value] : expected) {
    if (std::abs(step - value) <= 0.01 * value) return name;
  }
  return message("other: a step of {}", step);
}

// How far a first step goes at a learning rate of 1.
template <class T>
double first_step(typename T::Options options, double g) {
  options.learning_rate = 1;
  const TensorSpec spec(Shape{1});
  const Tensor w = zeros(spec).require_grad();
  T({w}, options).step(std::initializer_list<Tensor>{full(spec, g)});
  return std::abs(w.at({0}));
}

void add_optimizers(json& found, Convention convention) {
  const auto sgd = optim::Sgd::Options::defaults(convention);
  auto adam = optim::Adam::Options::defaults(convention);
  auto rms = optim::RmsProp::Options::defaults(convention);
  const auto add_rate = [&](const char* name, double rate) {
    if (!std::isnan(rate)) found[name] = rate;
  };
  add_rate("sgd_rate", sgd.learning_rate);
  add_rate("adam_rate", adam.learning_rate);
  add_rate("rmsprop_rate", rms.learning_rate);
  found["adam_beta1"] = adam.beta1;
  found["adam_beta2"] = adam.beta2;
  found["adam_epsilon"] = adam.epsilon;
  found["rmsprop_epsilon"] = rms.epsilon;
  const double far = first_step<optim::RmsProp>(rms, 1e6);
  const double decay = 1 - 1 / (far * far), root = std::sqrt(1 - adam.beta2);
  found["rmsprop_decay"] = decay;
  // With gradient and epsilon at 1, the place of epsilon and the first mean square decide how far a step goes.
  adam.epsilon = rms.epsilon = 1;
  found["adam_epsilon_place"] =
      nearest(first_step<optim::Adam>(adam, 1),
              {{"beside the corrected root", 0.5}, {"beside the root before its correction", root / (1 + root)}});
  const double step = first_step<optim::RmsProp>(rms, 1), fresh = 1 - decay;
  const bool from_one = step < 0.72;  // 1 / sqrt(2) at most
  const double v = from_one ? 1 : fresh;
  found["rmsprop_first"] = from_one ? 1 : 0;
  found["rmsprop_epsilon_place"] =
      nearest(step, {{"beside the root", 1 / (std::sqrt(v) + 1)}, {"under the root", 1 / std::sqrt(v + 1)}});
}

struct Normalised {
  double y, mean, variance;
};
// What a new layer does to a channel of two images; y is the second's.
Normalised normalised(float a, float b, Convention convention) {
  const TensorSpec one(Shape{1});
  const Tensor x = Tensor::from({a, b}, Shape{2, 1, 1, 1}), mean = zeros(one), variance = ones(one);
  const Tensor y = batch_norm(x, ones(one), zeros(one), mean, variance, batch_norm_defaults(convention));
  return {y.at({1, 0, 0, 0}), mean.at({0}), variance.at({0})};
}

void add_batch_norm(json& found, Convention convention) {
  constexpr float kNear = 1e-4f;
  const Normalised far = normalised(0, 2, convention);  // of mean 1, of variance 1 by 2 elements and 2 by 1
  const double ratio = double{kNear} / normalised(-kNear, kNear, convention).y;
  found["batch_norm_momentum"] = far.mean;
  found["batch_norm_epsilon"] = ratio * ratio - double{kNear} * kNear;
  found["batch_norm_running_var"] =
      nearest((far.variance - (1 - far.mean)) / far.mean, {{"of the batch", 1}, {"unbiased", 2}});
}

void add_machine(json& found) {
  const Tensor small = full(TensorSpec(Shape{1 << 22}), 1e-20), tiny = mul(small, small);
  const auto zeros_there = std::ranges::count(tiny.data<float>(), 0.0f);
  found["denormals"] = zeros_there == 0              ? "kept"
                       : zeros_there == tiny.numel() ? "flushed to 0"
                                                     : "flushed by some threads";
  const TensorSpec square(Shape{64, 64});
  const double factor = 1 + std::exp2(-12);
  found["product"] = matmul(full(square, factor), ones(square)).at({0, 0}) == 64 * factor ? "f32" : "rounded";
  const bool is_strict = Policy().math == MathMode::kStrict;
  found["gpu_product"] = found["gpu_convolution"] = is_strict ? "f32" : "tf32";
  found["threads"] = threads();
}

}  // namespace

json defaults() {
  const NoGrad none;
  json all;
  for (const Convention convention : kConventions) {
    json& found = all[to_string(convention)];
    found["images"] =
        models::Conv2d(3, 4, 1)(zeros(TensorSpec(Shape{1, 3, 5, 6})), {}).shape()[1] == 4 ? "N C H W" : "N H W C";
    add_layers(found, convention);
    add_optimizers(found, convention);
    add_batch_norm(found, convention);
    Generator generator(1);
    const Tensor x = ones(TensorSpec(Shape{1000}));
    found["dropout_kept"] = largest(dropout(x, 0.5, generator));
    found["dropout_in_use"] = largest(dropout(x, 0.5, generator, false));
    add_machine(found);
  }
  return all;
}

}  // namespace plumb::compare
