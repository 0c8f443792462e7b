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

TEST(NetworkTest, ParameterCountsAreThoseOfTheirPapers) {
  EXPECT_EQ(make_network("alexnet")->parameter_count(), 78330250);
  EXPECT_EQ(make_network("vgg16")->parameter_count(), 8735652);
  EXPECT_EQ(make_network("lenet")->parameter_count(), 61706);
  EXPECT_EQ(make_network("resnet20")->parameter_count(), 269722);
  EXPECT_EQ(make_network("resnet56")->parameter_count(), 853018);
}

TEST(NetworkTest, TableListsEveryParameter) {
  for (const std::string& name : network_names()) {
    const auto network = make_network(name);
    int64_t listed = 0;
    for (const auto& row : network->table()) listed += row.parameters;
    EXPECT_EQ(listed, network->parameter_count()) << name;
  }
}

}  // namespace
}  // namespace plumb::models
