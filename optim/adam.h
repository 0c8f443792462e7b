// Adam, and Adam with decoupled weight decay.
#pragma once

#include "../kernels/optimizer.h"
#include "optimizer.h"

namespace plumb::optim {

/// Kingma, Ba: Adam, a method for stochastic optimization (2015). At step t, with c1 = 1 - beta1^t, c2 = 1 - beta2^t:
///   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///   pytorch             w -= lr / c1 m / (sqrt(v) / sqrt(c2) + epsilon), after g += weight_decay w
///   keras, tensorflow1  w -= lr sqrt(c2) / c1 m / (sqrt(v) + epsilon), in Keras after w -= lr weight_decay w
/// The states m and v are called mean and mean_square.
/// Sources: torch/optim/adam.py, keras/src/optimizers/adam.py, tensorflow/core/kernels/training_ops.cc.
class Adam : public Optimizer {
 public:
  /// PyTorch's defaults; another framework's come from defaults().
  struct Options {
    double learning_rate = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = 0;  ///< not in TensorFlow 1
    Convention convention = Convention::kPyTorch;
    /// The framework's own defaults.
    static Options defaults(Convention convention);
  };
  /// Throws on options that are out of range or that the convention does not have.
  Adam(std::span<const Tensor> parameters, const Options& options);
  explicit Adam(std::span<const Tensor> parameters) : Adam(parameters, Options()) {}
  Adam(std::initializer_list<Tensor> parameters, const Options& options) : Adam(std::span(parameters), options) {}
  explicit Adam(std::initializer_list<Tensor> parameters) : Adam(std::span(parameters), Options()) {}

 protected:
  Adam(const char* name, std::span<const Tensor> parameters, const Options& options, bool decoupled);

 private:
  void apply(const Given& given) final;
  AdamParams params_;
};

/// Loshchilov, Hutter: Decoupled weight decay regularization (2019). Adam after w -= lr weight_decay w: in Keras the
/// same as Adam, with another default. TensorFlow 1 has none.
class AdamW final : public Adam {
 public:
  struct Options {
    double learning_rate = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = 1e-2;
    Convention convention = Convention::kPyTorch;
    /// Throws for TensorFlow 1.
    static Options defaults(Convention convention);
  };
  /// Throws on options that are out of range and for TensorFlow 1.
  AdamW(std::span<const Tensor> parameters, const Options& options);
  explicit AdamW(std::span<const Tensor> parameters) : AdamW(parameters, Options()) {}
  AdamW(std::initializer_list<Tensor> parameters, const Options& options) : AdamW(std::span(parameters), options) {}
  explicit AdamW(std::initializer_list<Tensor> parameters) : AdamW(std::span(parameters), Options()) {}
};

}  // namespace plumb::optim
