// RMSProp, plain and centered, with momentum.
#pragma once

#include "../kernels/optimizer.h"
#include "optimizer.h"

namespace plumb::optim {

/// Tieleman, Hinton: lecture 6.5 (2012); centered: Graves (2013). v = rho v + (1 - rho) g^2, and where centered
/// a = rho a + (1 - rho) g and v - a^2 in the place of v below:
///   pytorch             d = g / (sqrt(v) + epsilon);  u = momentum u + d;  w -= lr u, after g += weight_decay w
///   keras, tensorflow1  d = lr g / sqrt(v + epsilon);  u = momentum u + d;  w -= u, in Keras after w -= lr
///   weight_decay w
/// v - a^2 is rounded, so that it may fall below 0 where a gradient hardly changes: there d is NaN, as in these
/// frameworks, unless epsilon stands under the root and is larger. v starts at 0, in TensorFlow 1 at 1. The states v, a
/// and u are called mean_square, mean and velocity. Sources: torch/optim/rmsprop.py, keras/src/optimizers/rmsprop.py,
/// tensorflow/python/training/rmsprop.py.
class RmsProp final : public Optimizer {
 public:
  /// PyTorch's defaults; another framework's come from defaults().
  struct Options {
    double learning_rate = 1e-2;
    double rho = 0.99;  ///< alpha in PyTorch, decay in TensorFlow 1
    double epsilon = 1e-8;
    double momentum = 0;
    bool centered = false;
    double weight_decay = 0;  ///< not in TensorFlow 1
    Convention convention = Convention::kPyTorch;
    /// The framework's own defaults. TensorFlow 1 has none for the learning rate: NaN, which the optimizer refuses.
    static Options defaults(Convention convention);
  };
  /// Throws on options that are out of range or that the convention does not have.
  RmsProp(std::span<const Tensor> parameters, const Options& options);
  explicit RmsProp(std::span<const Tensor> parameters) : RmsProp(parameters, Options()) {}
  RmsProp(std::initializer_list<Tensor> parameters, const Options& options) : RmsProp(std::span(parameters), options) {}
  explicit RmsProp(std::initializer_list<Tensor> parameters) : RmsProp(std::span(parameters), Options()) {}

 private:
  void apply(const Given& given) override;
  RmsPropParams params_;
};

}  // namespace plumb::optim
