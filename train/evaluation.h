// Evaluates a network on a whole data set.
#pragma once

#include "../data/loader.h"
#include "../models/network.h"

namespace plumb::training {

/// Loss and correct answers of a network over a whole data set.
struct Evaluation {
  double loss = 0;  ///< the mean over all images
  int64_t correct = 0, total = 0;
};
/// How many predictions equal their labels; both are i64 (N), on any device. Waits for the device.
int64_t count_correct(const Tensor& predictions, const Tensor& labels);
/// Runs the network over epoch 0 of the loader, without recording and with running statistics. Waits for the device
/// after every batch.
Evaluation evaluate(const models::Network& network, datasets::Loader& loader);

}  // namespace plumb::training
