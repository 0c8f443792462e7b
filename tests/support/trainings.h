// Short complete training runs, to be compared with the same run in another mode, in another layout or on another
// device.
#pragma once

#include <vector>

#include "core/tensor.h"

namespace plumb::test {

struct Training {
  const char* model;
  const char* optimizer;
  int steps;
  int64_t batch;
  Layout layout = Layout::kNhwc;
  DType dtype = DType::kF32;  ///< of the images
};
/// The results of a training run, on the host.
struct Trained {
  std::vector<double> losses;
  std::vector<Tensor> state;  ///< parameters, statistics, and the state of the optimizer and of the generator
};

/// Trains on random images, with dropout if the network has it. The learning rate changes, and the last of every three
/// batches is short. On the host, replays of a captured step must ask nothing of the allocator, the cache and the tape.
Trained train(const Training& run, Device device, bool is_captured);

/// Requires equality bit for bit.
void expect_same(const Trained& got, const Trained& expected);
void expect_close(const Trained& got, const Trained& expected, double bound);

}  // namespace plumb::test
