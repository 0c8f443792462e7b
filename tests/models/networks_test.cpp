// What holds for every network.
#include "models/network.h"

#include <gtest/gtest.h>

namespace plumb::models {
namespace {

TEST(Networks, TakeAnEmptyBatch) {
  for (const std::string& name : network_names()) {
    const auto network = make_network(name);
    const Shape& in = network->input();
    const Tensor x = Tensor::empty(TensorSpec(Shape{0, in[0], in[1], in[2]}));

    EXPECT_EQ(network->forward(x, Pass{}).shape(), Shape({0, network->classes()})) << name;
  }
}

}  // namespace
}  // namespace plumb::models
