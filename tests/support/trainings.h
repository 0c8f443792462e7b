// A few steps of training in full: what is held against the same in another mode, in another layout or on another
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
/// What a training leaves behind, on the host.
struct Trained {
  std::vector<double> losses;
  std::vector<Tensor> state;  ///< parameters, statistics and the optimizer's
};

/// Trains on random images, with dropout where the network has it, and a changed rate, and a short batch at the end of
/// every three.
Trained train(const Training& run, Device device, bool is_captured);

/// Bit for bit.
void expect_same(const Trained& got, const Trained& expected);
void expect_close(const Trained& got, const Trained& expected, double bound);

}  // namespace plumb::test
