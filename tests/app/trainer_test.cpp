// What a trainer takes.
#include "app/trainer.h"

#include <gtest/gtest.h>

#include "data/synthetic.h"
#include "tests/support/compare.h"

namespace plumb::app {
namespace {

void make_trainer(const std::string& model, const std::string& data) {
  TrainConfig config;
  config.model = model;
  config.batch = 4;
  auto network = models::make_network(model);
  auto optimizer = make_optimizer(config, *network);
  const datasets::Dataset set = datasets::synthetic_like(data, datasets::Split::kTrain, 0, 4);
  Trainer(config, Layout::kNchw, std::move(network), std::move(optimizer), set, set);
}

TEST(TrainerTest, RefusesDataThatAreNotForTheNetwork) {
  EXPECT_TRUE(test::refused([] { make_trainer("lenet", "cifar10"); },
                            "train: lenet takes images (1, 28, 28), the data set synthetic-cifar10 has (3, 32, 32)"));
  EXPECT_TRUE(test::refused([] { make_trainer("resnet20", "cifar100"); },
                            "train: resnet20 has 10 classes, the data set synthetic-cifar100 has 100"));
  EXPECT_NO_THROW(make_trainer("lenet", "mnist"));
}

}  // namespace
}  // namespace plumb::app
