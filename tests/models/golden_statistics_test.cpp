// The running statistics that a step of training leaves, against PyTorch's.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/models/golden.h"
#include "tests/support/tensors.h"

namespace plumb::models {
namespace {

TEST(GoldenStatistics, AreUpdatedAsInPyTorch) {
  const GoldenFile all("resnet20.safetensors");
  const std::vector<Listed> listed = listed_of(all);
  for (const Layout layout : kPublicLayouts) {
    SCOPED_TRACE(to_string(layout));
    const auto network = make_network("resnet20");
    generate(*network, listed);
    const NoGrad untaped;

    network->forward(generated_images(layout), ForwardContext{.train = true});

    const GoldenFile want = all["batches"]["generated"]["train"]["statistics"];
    EXPECT_EQ(want.names().size(), network->buffers().size());
    expect_statistics(want, listed, *network, 1e-6);
  }
}

TEST(GoldenStatistics, AreLeftAloneByEvaluation) {
  const std::vector<Listed> listed = listed_of(GoldenFile("resnet20.safetensors"));
  const auto network = make_network("resnet20");
  generate(*network, listed);
  const NoGrad untaped;

  network->forward(generated_images(Layout::kNhwc), ForwardContext{});

  for (const Listed& entry : listed) {
    const auto statistic = std::ranges::find(network->buffers(), entry.name, &NamedTensor::name);
    if (statistic == network->buffers().end()) continue;
    const Tensor here = test::on_host(statistic->tensor);
    const auto have = here.data<float>();
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(have[i], static_cast<float>(entry.first[i])) << statistic->name;
  }
}

}  // namespace
}  // namespace plumb::models
