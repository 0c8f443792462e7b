// First values of parameters: each framework's defaults, and the named schemes of the literature.
//
// Functions fill a tensor in the order of its memory from a seed: the same seed gives the same numbers, on every
// machine but for what core/random.h says of rounding. Give every tensor of a network a seed of its own.
#pragma once

#include "../core/convention.h"
#include "../core/tensor.h"

namespace plumb::models {

/// The inputs and outputs of one element of a weight: of w (OUT, IN), or of w (OC, IC / G, KH, KW) times the kernel's
/// area.
struct Fans {
  int64_t in, out;
};
/// Throws unless the shape is a linear layer's or a convolution's.
Fans fans(const Shape& w);

/// The framework's default for the weight of a linear layer or a convolution. PyTorch: U(-b, b), b = 1 / sqrt(fan_in),
/// which it calls kaiming_uniform with a = sqrt 5. Keras and TensorFlow 1: Glorot's, U(-b, b) with
/// b = sqrt(6 / (fan_in + fan_out)).
void init_weight(Tensor& w, Convention convention, int64_t fan_in, int64_t fan_out, uint64_t seed);
/// The framework's default for the bias beside a weight. PyTorch: U(-b, b), b = 1 / sqrt(fan_in). The others: 0.
void init_bias(Tensor& b, Convention convention, int64_t fan_in, uint64_t seed);

/// Every element the same. This and all below throw on tensors that are not floating.
void constant(Tensor& x, double value);
/// U[low, high).
void uniform(Tensor& x, double low, double high, uint64_t seed);
/// N(mean, deviation^2).
void normal(Tensor& x, double mean, double deviation, uint64_t seed);
/// N(0, deviation^2), redrawn outside of two deviations.
void truncated_normal(Tensor& x, double deviation, uint64_t seed);

/// By what the variance is divided: inputs, outputs, or their mean.
enum class Fan { kIn, kOut, kAverage };
/// The shape of what variance_scaling draws.
enum class Distribution { kUniform, kNormal, kTruncatedNormal };
/// Numbers with mean 0 and variance scale / fan. Keras calls it VarianceScaling; truncated normals have this variance
/// after the cut.
void variance_scaling(Tensor& w, double scale, Fan fan, Distribution distribution, uint64_t seed);

/// Glorot, Bengio: Understanding the difficulty of training deep feedforward neural networks (2010).
inline void xavier_uniform(Tensor& w, uint64_t seed) {
  variance_scaling(w, 1, Fan::kAverage, Distribution::kUniform, seed);
}
inline void xavier_normal(Tensor& w, uint64_t seed) {
  variance_scaling(w, 1, Fan::kAverage, Distribution::kNormal, seed);
}
/// He, Zhang, Ren, Sun: Delving deep into rectifiers (2015), for ReLU.
inline void kaiming_uniform(Tensor& w, uint64_t seed, Fan fan = Fan::kIn) {
  variance_scaling(w, 2, fan, Distribution::kUniform, seed);
}
inline void kaiming_normal(Tensor& w, uint64_t seed, Fan fan = Fan::kIn) {
  variance_scaling(w, 2, fan, Distribution::kNormal, seed);
}

}  // namespace plumb::models
