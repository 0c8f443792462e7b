// Stochastic gradient descent, with momentum and Nesterov momentum.
#pragma once

#include "../kernels/optimizer.h"
#include "optimizer.h"

namespace plumb::optim {

/// With g the gradient, v the velocity (first 0) and lr the learning rate:
///   pytorch      g += weight_decay w;  v = momentum v + (1 - dampening) g (first v = g);  w -= lr v
///   keras        w -= lr weight_decay w;  v = momentum v - lr g;  w += v
///   tensorflow1  v = momentum v + g;  w -= lr v
/// Nesterov's step looks ahead: lr (g + momentum v), in Keras momentum v - lr g. Without momentum, w -= lr g.
/// Sources: torch/optim/sgd.py, keras/src/optimizers/sgd.py, tensorflow/core/kernels/training_ops.cc.
class Sgd final : public Optimizer {
 public:
  /// PyTorch's defaults; another framework's come from defaults().
  struct Options {
    double learning_rate = 1e-3;
    double momentum = 0;
    double dampening = 0;  ///< PyTorch only
    bool nesterov = false;
    double weight_decay = 0;  ///< not in TensorFlow 1
    Convention convention = Convention::kPyTorch;
    /// The framework's own defaults. TensorFlow 1 has none for the learning rate: NaN, which the optimizer refuses.
    static Options defaults(Convention convention);
  };
  /// Throws on options that are out of range or that the convention does not have.
  Sgd(std::span<const Tensor> parameters, const Options& options);
  explicit Sgd(std::span<const Tensor> parameters) : Sgd(parameters, Options()) {}
  Sgd(std::initializer_list<Tensor> parameters, const Options& options) : Sgd(std::span(parameters), options) {}
  explicit Sgd(std::initializer_list<Tensor> parameters) : Sgd(std::span(parameters), Options()) {}

 private:
  void apply(const Given& given) override;
  SgdParams params_;
};

}  // namespace plumb::optim
