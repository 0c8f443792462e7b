#include "data/synthetic.h"
#include "tests/support/compare.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/error.h"

namespace plumb::datasets {
namespace {

uint64_t fingerprint(const Dataset& set) {  // FNV-1a
  uint64_t h = 0xcbf29ce484222325ull;
  const auto add = [&](uint8_t byte) { h = (h ^ byte) * 0x100000001b3ull; };
  for (const int64_t label : set.labels) add(static_cast<uint8_t>(label));
  for (const uint8_t p : set.pixels) add(p);
  return h;
}

TEST(Dataset, TakesItsFirstImages) {
  const Dataset all = synthetic({.image = {2, 3, 4}, .classes = 7, .count = 20});

  const Dataset some = all.first(5);

  EXPECT_EQ(some.size(), 5);
  EXPECT_EQ(some.classes, 7);
  EXPECT_EQ(some.labels, std::vector<int64_t>(all.labels.begin(), all.labels.begin() + 5));
  EXPECT_EQ(some.pixels, std::vector<uint8_t>(all.pixels.begin(), all.pixels.begin() + 5 * 24));
  EXPECT_THROW(all.first(21), Error);
  EXPECT_THROW(all.first(-1), Error);
}

TEST(Dataset, ChecksThatItFitsTogether) {
  Dataset set = Dataset::make("own", Split::kTrain, {1, 2, 2}, 3, 4);
  EXPECT_NO_THROW(set.check());

  set.labels[3] = 3;
  EXPECT_THROW(set.check(), Error);
  set.labels[3] = -1;
  EXPECT_THROW(set.check(), Error);
  set.labels[3] = 2;
  set.pixels.pop_back();
  EXPECT_THROW(set.check(), Error);
}

TEST(Dataset, RefusesSizesThatCannotBe) {
  const int64_t huge = std::numeric_limits<int64_t>::max();
  EXPECT_THROW(Dataset::make("x", Split::kTrain, {32, 32}, 10, 1), Error);
  EXPECT_THROW(Dataset::make("x", Split::kTrain, {3, 0, 32}, 10, 1), Error);
  EXPECT_THROW(Dataset::make("x", Split::kTrain, {3, 32, 32}, 0, 1), Error);
  EXPECT_THROW(Dataset::make("x", Split::kTrain, {3, 32, 32}, 10, -1), Error);
  EXPECT_THROW(Dataset::make("x", Split::kTrain, {3, 32, 32}, 10, huge), Error);
}

TEST(Synthetic, IsTheSameOnEveryMachine) {
  EXPECT_EQ(fingerprint(synthetic({.image = {3, 9, 17}, .classes = 5, .count = 40, .seed = 42})), 2746115756066732186u);
  EXPECT_EQ(fingerprint(synthetic_like("mnist", Split::kTest, 7, 100)), 16404998317294959143u);
}

TEST(Synthetic, ImagesDependOnSeedSplitAndPlaceOnly) {
  const Dataset few = synthetic_like("cifar10", Split::kTrain, 1, 10);
  const Dataset more = synthetic_like("cifar10", Split::kTrain, 1, 30);
  const Dataset test = synthetic_like("cifar10", Split::kTest, 1, 10);
  const Dataset other = synthetic_like("cifar10", Split::kTrain, 2, 10);

  EXPECT_EQ(more.first(10).pixels, few.pixels);
  EXPECT_EQ(more.first(10).labels, few.labels);
  EXPECT_NE(test.pixels, few.pixels);
  EXPECT_NE(other.pixels, few.pixels);
}

TEST(Synthetic, HasTheSizesOfTheRealSets) {
  const Dataset cifar100 = synthetic_like("cifar100", Split::kTest, 0);
  EXPECT_EQ(cifar100.name, "synthetic-cifar100");
  EXPECT_EQ(cifar100.image, Shape({3, 32, 32}));
  EXPECT_EQ(cifar100.classes, 100);
  EXPECT_EQ(cifar100.size(), 10000);
  EXPECT_NO_THROW(cifar100.check());
  const Dataset mnist = synthetic_like("mnist", Split::kTrain, 0);
  EXPECT_EQ(mnist.image, Shape({1, 28, 28}));
  EXPECT_EQ(mnist.size(), 60000);
  const Dataset imagenet = synthetic_like("imagenet", Split::kTrain, 0, 3);
  EXPECT_EQ(imagenet.image, Shape({3, 224, 224}));
  EXPECT_EQ(imagenet.classes, 1000);
  EXPECT_EQ(usual_count("imagenet", Split::kTrain), 2000);
  EXPECT_EQ(usual_count("imagenet", Split::kTest), 500);
  EXPECT_THROW(synthetic_like("imagenet21k", Split::kTrain, 0), Error);
}

TEST(Synthetic, TakesTheSmallestShapes) {
  const Dataset set = synthetic({.image = {1, 1, 1}, .classes = 1, .count = 3});
  EXPECT_EQ(set.pixels.size(), 3u);
  EXPECT_EQ(set.labels, std::vector<int64_t>(3, 0));
  EXPECT_EQ(synthetic({.count = 0}).size(), 0);
}

// The class whose mean training image is nearest is right for nearly every test image: there is something to learn.
TEST(Synthetic, ClassesCanBeTold) {
  const Dataset train = synthetic_like("cifar10", Split::kTrain, 3, 1000);
  const Dataset test = synthetic_like("cifar10", Split::kTest, 3, 300);
  std::vector<std::vector<double>> means(10, std::vector<double>(3072));
  std::vector<double> counts(10);
  for (int64_t i = 0; i < train.size(); ++i) counts[static_cast<size_t>(train.labels[static_cast<size_t>(i)])] += 1;
  for (int64_t i = 0; i < train.size(); ++i) {
    const auto label = static_cast<size_t>(train.labels[static_cast<size_t>(i)]);
    for (size_t j = 0; j < 3072; ++j) means[label][j] += train.pixels_of(i)[j] / counts[label];
  }

  int right = 0;
  for (int64_t i = 0; i < test.size(); ++i) {
    size_t nearest = 0;
    double least = std::numeric_limits<double>::max();
    for (size_t c = 0; c < 10; ++c) {
      double distance = 0;
      for (size_t j = 0; j < 3072; ++j) {
        const double d = means[c][j] - test.pixels_of(i)[j];
        distance += d * d;
      }
      if (distance < least) least = distance, nearest = c;
    }
    right += static_cast<int64_t>(nearest) == test.labels[static_cast<size_t>(i)];
  }
  EXPECT_GT(right, 270);
}

TEST(Synthetic, MoreClassesThanThereIsMemoryForAreRefused) {
  EXPECT_TRUE(test::refused(
      [] {
        synthetic({.image = {8, 32, 32}, .classes = int64_t{1} << 61, .count = 1});
      },
      "synthetic: 2305843009213693952 classes were asked for; use at most 4294967296"));
}

}  // namespace
}  // namespace plumb::datasets
