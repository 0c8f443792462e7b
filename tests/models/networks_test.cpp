// What holds for every network.
#include "models/network.h"

#include <gtest/gtest.h>

#include "tests/support/compare.h"

namespace plumb::models {
namespace {

TEST(Networks, TakeAnEmptyBatch) {
  for (const std::string& name : network_names()) {
    const auto network = make_network(name);
    const Shape& in = network->input();
    const Tensor x = Tensor::empty(TensorSpec(Shape{0, in[0], in[1], in[2]}));

    EXPECT_EQ(network->forward(x, ForwardContext{}).shape(), Shape({0, network->classes()})) << name;
  }
}

TEST(Networks, AreListedWhereAnotherIsAskedFor) {
  const std::string error = test::error_of([] { make_network("lenet5"); });
  EXPECT_NE(error.find("model \"lenet5\" is unknown; use one of alexnet, vgg16, lenet"), error.npos) << error;
  for (const std::string& name : network_names()) EXPECT_NE(error.find(name), error.npos) << error;
  EXPECT_EQ(make_network("vgg")->name(), "vgg16");
}

}  // namespace
}  // namespace plumb::models
