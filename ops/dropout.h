// Dropout (Srivastava et al.: Dropout, JMLR 2014), scaled in training.
#pragma once

#include "../core/tape.h"
#include "../kernels/dropout.h"

namespace plumb {

/// A stream of random numbers. Its state is a tensor, so that a captured step advances it as an eager step does. Copies
/// share the state, which is on the thread's device (DeviceScope). Only one thread at a time may use it.
struct Generator {
  Tensor state;  ///< i64 (2): the seed, and the number of Philox blocks used so far
  explicit Generator(uint64_t seed = 0);
};

/// In training, each element of x becomes 0 with probability p, and x / (1 - p) otherwise. Without training or with p =
/// 0, returns x itself. x: any shape and layout, f32, bf16 or f64. Which elements are dropped depends on the
/// generator's state and on their logical index, not on layout or threads; advances the generator. Keeps a mask of one
/// byte per element. Throws unless 0 <= p < 1.
Tensor dropout(const Tensor& x, double p, Generator& generator, bool train = true);

/// The gradient of dropout: dy / (1 - p) where mask (u8, of dy's shape and layout) is 1, else 0. Keeps the mask.
Tensor dropout_backward(const Tensor& dy, const Tensor& mask, double p);

}  // namespace plumb
