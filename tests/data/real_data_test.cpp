#include <gtest/gtest.h>

#include <cstdlib>

#include "data/loader.h"

namespace plumb::datasets {
namespace {

struct Facts {
  const char* name;
  Shape image;
  int64_t classes, train, test;
  std::vector<double> mean, deviation;  // of the training split, as published
};
std::ostream& operator<<(std::ostream& out, const Facts& facts) { return out << facts.name; }

class RealData : public ::testing::TestWithParam<Facts> {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("PLUMB_DATA");
    if (!folder || !*folder) GTEST_SKIP() << "PLUMB_DATA does not name the folder of the data sets";
    try {
      set_ = load(GetParam().name, folder);
    } catch (const Error& e) {
      FAIL() << e.what();
    }
  }
  TrainTest set_;
};

TEST_P(RealData, IsWhatWasPublished) {
  const Facts& facts = GetParam();
  EXPECT_EQ(set_.train.size(), facts.train);
  EXPECT_EQ(set_.test.size(), facts.test);
  EXPECT_EQ(set_.train.image, facts.image);
  EXPECT_EQ(set_.train.classes, facts.classes);
  std::vector<int64_t> counts(static_cast<size_t>(facts.classes));
  for (const int64_t label : set_.train.labels) ++counts[static_cast<size_t>(label)];
  for (const int64_t count : counts) {
    // MNIST has 5421 to 6742 of a digit, the CIFAR sets as many of every class.
    EXPECT_NEAR(static_cast<double>(count), static_cast<double>(facts.train / facts.classes),
                facts.image[0] == 1 ? 750 : 0);
  }
}

TEST_P(RealData, IsCentredByThePublishedMeans) {
  const Facts& facts = GetParam();
  Loader loader(set_.train, {.batch = 1000, .normalization = {facts.mean, facts.deviation}});
  std::vector<double> sum(facts.mean.size()), squares(facts.mean.size());
  const auto plane = static_cast<size_t>(facts.image[1] * facts.image[2]);
  Batch batch;
  loader.start_epoch(0);
  while (loader.next(batch)) {
    const auto pixels = batch.images.data<float>();
    for (size_t i = 0; i < pixels.size(); ++i) {
      const size_t c = i / plane % sum.size();
      sum[c] += static_cast<double>(pixels[i]);
      squares[c] += static_cast<double>(pixels[i]) * static_cast<double>(pixels[i]);
    }
  }
  const double count = static_cast<double>(set_.train.size()) * static_cast<double>(plane);
  for (size_t c = 0; c < sum.size(); ++c) {
    EXPECT_NEAR(sum[c] / count, 0, 1e-3);
    EXPECT_NEAR(squares[c] / count, 1, 2e-3);
  }
}

const Facts kFacts[] = {
    {"cifar10", {3, 32, 32}, 10, 50000, 10000, {0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}},
    {"cifar100", {3, 32, 32}, 100, 50000, 10000, {0.5071, 0.4865, 0.4409}, {0.2673, 0.2564, 0.2762}},
    {"mnist", {1, 28, 28}, 10, 60000, 10000, {0.1307}, {0.3081}},
};
INSTANTIATE_TEST_SUITE_P(, RealData, ::testing::ValuesIn(kFacts),
                         [](const auto& set) { return std::string(set.param.name); });

}  // namespace
}  // namespace plumb::datasets
