// What holds for every network.
#include "models/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "models/resnet.h"
#include "tests/support/compare.h"
#include "tests/support/tensors.h"

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
  EXPECT_EQ(make_network("resnet50")->parameter_count(), 25557032);
}

TEST(NetworkTest, TableListsEveryParameter) {
  for (const std::string& name : network_names()) {
    const auto network = make_network(name);
    int64_t listed = 0;
    for (const auto& row : network->table()) listed += row.parameters;
    EXPECT_EQ(listed, network->parameter_count()) << name;
  }
}

// The mean square of a weight's elements, times n.
double scaled_variance(const Tensor& w, double n) {
  double squares = 0;
  const std::vector<double> all = test::to_doubles(w);
  for (const double v : all) squares += v * v;
  return n * squares / static_cast<double>(all.size());
}

TEST(ResNet50Test, IsNamedAndDrawnAsTorchvisions) {
  const ResNet50 network(ParameterMaker(1, Convention::kPyTorch));
  const auto has = [](const std::vector<NamedTensor>& all, const char* name) {
    return std::ranges::count(all, name, &NamedTensor::name) == 1;
  };
  for (const char* name : {"conv1.weight", "bn1.bias", "layer1.0.downsample.0.weight", "layer3.5.conv3.weight",
                           "layer4.0.downsample.1.weight", "fc.weight", "fc.bias"}) {
    EXPECT_TRUE(has(network.parameters(), name)) << name;
  }
  EXPECT_TRUE(has(network.buffers(), "layer4.0.downsample.1.running_var"));
  EXPECT_EQ(network.parameters().size(), 161u);
  EXPECT_EQ(network.buffers().size(), 106u);
  const auto conv1 = test::to_doubles(network.conv1.weight);
  EXPECT_GT(std::ranges::max(conv1), 3 * std::sqrt(2.0 / (64 * 49))) << "normal, not uniform";
  EXPECT_NEAR(scaled_variance(network.conv1.weight, 64 * 49), 2, 0.1);
  EXPECT_NEAR(scaled_variance(network.blocks[2].conv3.weight, 256), 2, 0.1);
  EXPECT_NEAR(scaled_variance(network.blocks[3].conv2.weight, 128 * 9), 2, 0.1);
  EXPECT_NEAR(scaled_variance(network.fc.weight, 2048), 1.0 / 3, 0.01);
  const ResNet50 keras(ParameterMaker(1, Convention::kKeras));
  EXPECT_NEAR(scaled_variance(keras.blocks[2].conv3.weight, 64 + 256), 2, 0.1) << "Glorot's";
}

TEST(ResNet50Test, TakesImagesOfAnySize) {
  const auto network = make_network("resnet50");
  const NoGrad untaped;
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{32, 47}, {1, 1}}) {
    EXPECT_EQ(network->forward(test::random_tensor(TensorSpec(Shape{1, 3, height, width}), 1), {}).shape(),
              Shape({1, 1000}));
  }
}

}  // namespace
}  // namespace plumb::models
