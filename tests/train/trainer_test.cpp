// What a trainer takes, and when it reads what its steps give.
#include "train/trainer.h"

#include <gtest/gtest.h>

#include "data/synthetic.h"
#include "optim/make.h"
#include "tests/support/compare.h"

namespace plumb::training {
namespace {

datasets::Dataset images(const std::string& data, int64_t count) {
  return datasets::synthetic_like(data, datasets::Split::kTrain, 0, count);
}

Trainer trainer_of(const std::string& model, const datasets::Dataset& set, const TrainerOptions& options) {
  auto network = models::make_network(model);
  auto optimizer = optim::make(optim::Kind::kAdam, network->trainable(), {});
  return {std::move(network), std::move(optimizer), set, set, options};
}

TEST(TrainerTest, RefusesDataThatAreNotForTheNetwork) {
  const auto refuses = [](const std::string& model, const std::string& data, const std::string& part) {
    const datasets::Dataset set = images(data, 4);
    return test::refused([&] { trainer_of(model, set, {.batch = 4}); }, part);
  };
  EXPECT_TRUE(refuses("lenet", "cifar10",
                      "train: lenet takes images (1, 28, 28), the data set synthetic-cifar10 has (3, 32, 32)"));
  EXPECT_TRUE(
      refuses("resnet20", "cifar100", "train: resnet20 has 10 classes, the data set synthetic-cifar100 has 100"));
  const datasets::Dataset mnist = images("mnist", 4);
  const datasets::Dataset cifar10 = images("cifar10", 4), cifar100 = images("cifar100", 4);
  const auto refuses_test_split = [&](const datasets::Dataset& test, const std::string& part) {
    auto network = models::make_network("resnet20");
    auto optimizer = optim::make(optim::Kind::kAdam, network->trainable(), {});
    return test::refused([&] { Trainer(std::move(network), std::move(optimizer), cifar10, test, {.batch = 4}); }, part);
  };
  EXPECT_TRUE(refuses_test_split(mnist, "train: resnet20 takes images (3, 32, 32), the data set synthetic-mnist has"));
  EXPECT_TRUE(refuses_test_split(cifar100, "has 10 classes, the data set synthetic-cifar100 has 100"));
  EXPECT_NO_THROW(trainer_of("lenet", mnist, {.batch = 4}));
  EXPECT_TRUE(test::refused([&] { trainer_of("lenet", mnist, {.log_every = 0}); }, "every 0 steps; use at least 1"));
}

// Five steps, the last of them short: losses of every one, and of some.
TEST(TrainerTest, MeansAreTheSameHoweverSeldomResultsAreRead) {
  const datasets::Dataset set = images("mnist", 36);
  for (const StepMode mode : kStepModes) {
    EpochResult expected;
    std::vector<double> losses;
    for (const int64_t every : {1, 2, 3, 100}) {
      Trainer trainer = trainer_of("lenet", set, {.batch = 8, .mode = mode, .seed = 3, .log_every = every});
      std::vector<std::optional<double>> read;
      const EpochResult r = trainer.run_epoch(0, [&](const StepReport& s) {
        EXPECT_EQ(s.step, static_cast<int64_t>(read.size()));
        EXPECT_EQ(s.steps, 5);
        EXPECT_GT(s.ms, 0);
        read.push_back(s.loss);
      });
      ASSERT_EQ(read.size(), 5u);
      EXPECT_EQ(trainer.optimizer().steps(), 5);
      if (every == 1) {
        expected = r;
        for (const auto& loss : read) losses.push_back(loss.value_or(-1));
        double sum = 0;
        for (size_t i = 0; i < 5; ++i) sum += losses[i] * (i < 4 ? 8 : 4);
        EXPECT_EQ(r.loss, sum / 36);
        EXPECT_GE(r.train_accuracy, 0);
      }
      for (size_t i = 0; i < 5; ++i) {
        const bool is_due = (i + 1) % static_cast<size_t>(every) == 0 || i == 4;
        EXPECT_EQ(read[i], is_due ? std::optional(losses[i]) : std::nullopt) << to_string(mode) << every << " " << i;
      }
      EXPECT_EQ(r.loss, expected.loss) << to_string(mode) << every;
      EXPECT_EQ(r.train_accuracy, expected.train_accuracy) << to_string(mode) << every;
      EXPECT_EQ(r.test_loss, expected.test_loss) << to_string(mode) << every;
    }
  }
}

// It reads the splits in each epoch, so that none may be a temporary.
template <class Train, class Test>
constexpr bool takes_sets =
    std::is_constructible_v<Trainer, std::unique_ptr<models::Network>, std::unique_ptr<optim::Optimizer>, Train, Test,
                            const TrainerOptions&>;
static_assert(takes_sets<const datasets::Dataset&, datasets::Dataset&>);
static_assert(!takes_sets<datasets::Dataset, datasets::Dataset&> && !takes_sets<datasets::Dataset&, datasets::Dataset>);
static_assert(!takes_sets<datasets::Dataset, datasets::Dataset>);

TEST(TrainerTest, RefusesAnOptimizerOfOtherParameters) {
  const datasets::Dataset set = images("mnist", 8);
  const auto refuses = [&](auto change) {
    auto network = models::make_network("lenet", 0);
    TensorList parameters = network->trainable();
    change(parameters);
    auto optimizer = optim::make(optim::Kind::kSgd, parameters, {});
    return test::refused([&] { Trainer(std::move(network), std::move(optimizer), set, set, {.batch = 8}); },
                         "train: the optimizer is not for the parameters of lenet; make it of its trainable()");
  };
  const auto others = models::make_network("lenet", 1);
  EXPECT_TRUE(refuses([&](TensorList& p) { p = others->trainable(); }));
  EXPECT_TRUE(refuses([](TensorList& p) { std::swap(p.front(), p.back()); }));
  EXPECT_TRUE(refuses([](TensorList& p) { p.pop_back(); }));
}

TEST(TrainerTest, AnEpochMayBeRunWithoutAnyoneWatching) {
  const datasets::Dataset set = images("mnist", 8);
  Trainer trainer = trainer_of("lenet", set, {.batch = 8});
  EXPECT_GT(trainer.run_epoch(0).loss, 0);
}

}  // namespace
}  // namespace plumb::training
