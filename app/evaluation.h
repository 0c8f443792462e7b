// A network's answers on a whole data set.
#pragma once

#include "data/loader.h"
#include "models/network.h"

namespace plumb::app {

/// Loss and correct answers of a network over a whole data set.
struct Evaluation {
  double loss = 0;
  int64_t correct = 0, total = 0;
};
/// How many labels of a batch were predicted.
int64_t count_correct(const Tensor& predictions, const Tensor& labels);
Evaluation evaluate(const models::Network& network, datasets::Loader& loader);

}  // namespace plumb::app
