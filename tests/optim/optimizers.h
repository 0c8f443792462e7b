// Optimizers and parameters that the tests of what all optimizers share are run on.
#pragma once

#include <functional>
#include <memory>

#include "optim/adam.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"
#include "tests/support/tensors.h"

namespace plumb::optim {

inline std::vector<Tensor> made(std::span<const Shape> shapes, uint64_t seed, DType t = DType::kF32) {
  std::vector<Tensor> all;
  for (const Shape& s : shapes) all.push_back(test::random_tensor(TensorSpec(s, t), ++seed));
  return all;
}
inline std::vector<Tensor> parameters_of(std::span<const Shape> shapes, uint64_t seed, DType t = DType::kF32) {
  std::vector<Tensor> all = made(shapes, seed, t);
  for (Tensor& w : all) w.require_grad();
  return all;
}
inline const Shape kTwo[] = {{3, 4}, {5}};

using Make = std::function<std::unique_ptr<Optimizer>(std::span<const Tensor>)>;
template <class O>
Make maker(typename O::Options options) {
  return [options](std::span<const Tensor> w) { return std::make_unique<O>(w, options); };
}
inline std::vector<Make> every_optimizer() {
  return {maker<Sgd>({.learning_rate = 0.1}),
          maker<Sgd>({.learning_rate = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 1e-2}),
          maker<Sgd>({.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 1e-2, .convention = Convention::kKeras}),
          maker<Adam>({.weight_decay = 1e-2}),
          maker<Adam>(Adam::Options::defaults(Convention::kTensorFlow1)),
          maker<AdamW>({}),
          maker<RmsProp>({.momentum = 0.9, .centered = true}),
          maker<RmsProp>({.momentum = 0.9, .centered = true, .weight_decay = 1e-2, .convention = Convention::kKeras})};
}

}  // namespace plumb::optim
