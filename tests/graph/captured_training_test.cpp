// Captured training is eager training: bit for bit, over 50 steps, for every kind of optimizer, with dropout, running
// statistics, a learning rate that changes and a short last batch.
#include <gtest/gtest.h>

#include "tests/support/trainings.h"

namespace plumb {
namespace {

using test::Trained;
using test::Training;

class CapturedTraining : public testing::TestWithParam<Training> {};

std::string name_of(const testing::TestParamInfo<Training>& run) {
  return std::string(run.param.model) + "_" + run.param.optimizer;
}

TEST_P(CapturedTraining, IsBitwiseEagerTraining) {
  const Trained eager = test::train(GetParam(), {}, false);

  test::expect_same(test::train(GetParam(), {}, true), eager);

  EXPECT_NE(eager.losses.front(), eager.losses.back());
}

#ifdef PLUMB_SANITIZED
constexpr int64_t kBatch = 3;
#else
constexpr int64_t kBatch = 4;
#endif
std::vector<Training> with_every_optimizer(const char* model) {
  return {{model, "sgd", 50, kBatch}, {model, "adam", 50, kBatch}, {model, "rmsprop", 50, kBatch}};
}

// A large network goes no other way than the small ones: one of them, until the short batch is replayed too.
INSTANTIATE_TEST_SUITE_P(LeNet, CapturedTraining, testing::ValuesIn(with_every_optimizer("lenet")), name_of);
#ifdef PLUMB_SANITIZED
INSTANTIATE_TEST_SUITE_P(ResNet, CapturedTraining, testing::Values(Training{"resnet20", "rmsprop", 10, kBatch}),
                         name_of);
#else
INSTANTIATE_TEST_SUITE_P(ResNet, CapturedTraining, testing::ValuesIn(with_every_optimizer("resnet20")), name_of);
INSTANTIATE_TEST_SUITE_P(Large, CapturedTraining, testing::Values(Training{"vgg16", "adam", 10, kBatch}), name_of);
#endif

}  // namespace
}  // namespace plumb
