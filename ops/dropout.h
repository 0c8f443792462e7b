// Dropout (Srivastava et al.: Dropout, JMLR 2014), scaled in training.
#pragma once

#include "../core/tape.h"
#include "../kernels/dropout.h"

namespace plumb {

/// A stream of random numbers whose state is a tensor, so that a captured step advances it as an eager one does. Copies
/// share the state, which is on the thread's device (DeviceScope). One thread at a time may use it.
struct Generator {
  Tensor state;  ///< i64 (2): the seed, and the number of Philox blocks used so far
  explicit Generator(uint64_t seed = 0);
};

/// In training, each element of x is 0 with probability p, and x / (1 - p) otherwise; else, and for p = 0, x itself. x:
/// any shape and layout, f32, bf16 or f64. Which elements go depends on the generator's state and on their place in the
/// logical shape, not on layout or threads; the generator advances. Keeps a mask of one byte an element. Throws unless
/// 0 <= p < 1.
Tensor dropout(const Tensor& x, double p, Generator& generator, bool train = true);

/// The gradient of dropout: dy / (1 - p) where mask (u8, of dy's shape and layout) is 1, 0 elsewhere. Keeps the mask.
Tensor dropout_backward(const Tensor& dy, const Tensor& mask, double p);

}  // namespace plumb
