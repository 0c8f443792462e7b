// The running statistics that a step of training leaves, against PyTorch's.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/models/golden.h"
#include "tests/support/tensors.h"

namespace plumb::models {
namespace {

TEST(GoldenStatistics, AreUpdatedAsInPyTorch) {
  const Json all = golden_json("resnet20.json");
  const Json& batch = all["batches"]["generated"];
  for (const Layout layout : kPublicLayouts) {
    SCOPED_TRACE(to_string(layout));
    const auto network = make_network("resnet20");
    generate(*network, all["parameters"]);
    const NoGrad untaped;

    network->forward(generated_images(layout), ForwardContext{.train = true});

    expect_statistics(batch["train"]["statistics"], all["parameters"], *network, 1e-6);
  }
}

TEST(GoldenStatistics, AreLeftAloneByEvaluation) {
  const Json all = golden_json("resnet20.json");
  const auto network = make_network("resnet20");
  generate(*network, all["parameters"]);
  const NoGrad untaped;

  network->forward(generated_images(Layout::kNhwc), ForwardContext{});

  for (const Json& listed : all["parameters"]) {
    const auto statistic = std::ranges::find(network->buffers(), listed["name"].get<std::string>(), &NamedTensor::name);
    if (statistic == network->buffers().end()) continue;
    const Tensor here = test::on_host(statistic->tensor);
    const auto have = here.data<float>();
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(have[i], listed["first"][i].get<float>()) << statistic->name;
  }
}

}  // namespace
}  // namespace plumb::models
