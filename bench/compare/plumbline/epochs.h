// Trains a network on images of a file, epoch by epoch, in an order that is given: the same for every side.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/compare/plumbline/work.h"

namespace plumb::compare {

class Epochs {
 public:
  /// Files of safetensors: "images" (N, C, H, W) in f32 with "labels" (N) in i64, and "orders" (epochs, N). Files that
  /// were read before are not read again.
  void read(const std::string& data, const std::string& orders);
  /// Trains on all images in the order of the epoch, in whole batches of what the work was prepared for, and counts the
  /// right answers to the first `scored` images: {"loss": mean of the steps', "accuracy", "seconds": of the steps}.
  nlohmann::json run(Work& work, int64_t epoch, int64_t scored) const;

 private:
  std::string data_, orders_file_;
  Tensor images_, labels_, orders_;
};

}  // namespace plumb::compare
