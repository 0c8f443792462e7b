// Layers: a few parameters and what they do. Each call notes its row in the layer table.
#pragma once

#include <array>

#include "../ops/batch_norm.h"
#include "../ops/conv2d.h"
#include "../ops/linear.h"
#include "network.h"

namespace plumb::models {

/// Starts anew, for the calling thread, the sequence of seeds that layers without a maker draw their first values from:
/// one a layer, in the order in which they are made. Threads that never call it share one, which begins with 0.
void seed_layers(uint64_t seed);

/// A tensor with a border of zeros around its pixels, which the next layer takes into its own padding: nothing is
/// copied.
struct Padded {
  Tensor x;
  int64_t padding = 0;
};
/// The layer ZeroPad2d. It is in the table as any other.
Padded zero_pad(const Tensor& x, int64_t padding, const ForwardContext& context = {});

/// Convolution with a square kernel.
struct Conv2d {
  Tensor weight, bias;
  Conv2dParams params;

  Conv2d() = default;
  /// With parameters of its own in PyTorch's first distribution (seed_layers).
  Conv2d(int64_t in, int64_t out, int kernel, int stride = 1, int padding = 0, bool with_bias = true);
  Conv2d(ParameterMaker& maker, const std::string& name, int64_t in, int64_t out, int kernel, int stride = 1,
         int padding = 0, bool with_bias = true);
  /// y = conv(x), then the activation inside the same kernel.
  Tensor operator()(const Tensor& x, const ForwardContext& context = {},
                    Activation activation = Activation::kNone) const;
  Tensor operator()(const Padded& x, const ForwardContext& context = {},
                    Activation activation = Activation::kNone) const;
};

/// Fully connected.
struct Linear {
  Tensor weight, bias;

  Linear() = default;
  Linear(int64_t in, int64_t out);
  Linear(ParameterMaker& maker, const std::string& name, int64_t in, int64_t out);
  Tensor operator()(const Tensor& x, const ForwardContext& context = {},
                    Activation activation = Activation::kNone) const;
};

/// Batch normalisation over (N, H, W), in the convention of the network's maker. Adds the addend, if there is one, and
/// applies the activation inside the same kernel.
struct BatchNorm2d {
  Tensor weight, bias, running_mean, running_var;
  Convention convention = Convention::kPyTorch;

  BatchNorm2d() = default;
  explicit BatchNorm2d(int64_t channels, Convention convention = Convention::kPyTorch);
  BatchNorm2d(ParameterMaker& maker, const std::string& name, int64_t channels);
  Tensor operator()(const Tensor& x, const ForwardContext& context = {}, Activation activation = Activation::kNone,
                    const Tensor& addend = {}) const;
};

// Layers without parameters: ops that are rows of the layer table too.

/// max(x, 0) of any shape.
Tensor relu_layer(const Tensor& x, const ForwardContext& context = {});
/// The numbers of x must not be negative, as after a ReLU: then zeros around them are as good as nothing.
Tensor max_pool(const Padded& x, int kernel, const ForwardContext& context = {});
/// Of x (N, C, H, W), in windows of kernel x kernel that tile it; throws as max_pool2d does.
Tensor max_pool(const Tensor& x, int kernel, const ForwardContext& context = {});
/// In training, x with each element zeroed by this probability, from 0 to below 1, the rest scaled by 1 / (1 -
/// probability); otherwise x. Throws in training if the context has no generator.
Tensor dropout_layer(const Tensor& x, double probability, const ForwardContext& context = {});
/// (N, C, H, W) to (N, C H W), in this order whatever the layout.
Tensor flatten_layer(const Tensor& x, const ForwardContext& context = {});

}  // namespace plumb::models
