#include "data/loader.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "core/memory.h"
#include "data/synthetic.h"

namespace plumb::datasets {
namespace {

struct Epoch {
  std::vector<float> images;
  std::vector<int64_t> labels, counts;
  bool operator==(const Epoch&) const = default;
};
Epoch run_epoch(Loader& loader, int64_t epoch) {
  Epoch all;
  Batch batch;
  loader.start_epoch(epoch);
  while (loader.next(batch)) {
    const auto images = batch.images.data<float>();
    const auto labels = batch.labels.data<int64_t>();
    all.images.insert(all.images.end(), images.begin(), images.end());
    all.labels.insert(all.labels.end(), labels.begin(), labels.end());
    all.counts.push_back(batch.count);
  }
  return all;
}

const Dataset& images() {
  static const Dataset set = synthetic({.image = {3, 8, 6}, .classes = 10, .count = 103});
  return set;
}
LoaderOptions augmented(Layout layout, int workers, int prefetch) {
  return {
      .batch = 10, .augmentation = {2, true}, .layout = layout, .seed = 5, .workers = workers, .prefetch = prefetch};
}

TEST(Loader, NumberOfWorkersChangesNothing) {
  for (const Layout layout : kPublicLayouts) {
    Loader alone(images(), augmented(layout, 0, 1));
    const Epoch expected[] = {run_epoch(alone, 0), run_epoch(alone, 1)};
    EXPECT_NE(expected[0].images, expected[1].images);
    for (const int workers : {1, 2, 5}) {
      for (const int prefetch : {1, 3, 100}) {
        Loader loader(images(), augmented(layout, workers, prefetch));
        EXPECT_TRUE(run_epoch(loader, 0) == expected[0]) << workers << " workers, " << prefetch << " ahead";
        EXPECT_TRUE(run_epoch(loader, 1) == expected[1]) << workers << " workers, " << prefetch << " ahead";
      }
    }
  }
}

TEST(Loader, AnyEpochCanBeStarted) {
  Loader first(images(), augmented(Layout::kNchw, 2, 2)), resumed(images(), augmented(Layout::kNchw, 2, 2));
  for (int64_t epoch = 0; epoch < 3; ++epoch) run_epoch(first, epoch);

  EXPECT_TRUE(run_epoch(first, 3) == run_epoch(resumed, 3));
  EXPECT_TRUE(run_epoch(first, 0) == run_epoch(resumed, 0));
}

TEST(Loader, EveryEpochHasAnOrderOfItsOwn) {
  Loader loader(images(), {.batch = 10});
  const Epoch first = run_epoch(loader, 0), second = run_epoch(loader, 1);

  EXPECT_NE(second.labels, first.labels);
}

TEST(Loader, EveryImageComesOnceAnEpochWithItsLabel) {
  Dataset numbered = Dataset::make("numbered", Split::kTrain, {1, 1, 1}, 256, 200);
  for (size_t i = 0; i < 200; ++i) {
    numbered.pixels[i] = static_cast<uint8_t>(i);
    numbered.labels[i] = static_cast<int64_t>(i);
  }
  Loader loader(numbered, {.batch = 16, .normalization = {{}, {1.0 / 255}}, .workers = 2});

  const Epoch epoch = run_epoch(loader, 4);

  std::vector<int> seen(200);
  for (size_t i = 0; i < 200; ++i) {
    ASSERT_EQ(epoch.images[i], static_cast<float>(epoch.labels[i]));
    ++seen[static_cast<size_t>(epoch.labels[i])];
  }
  EXPECT_EQ(seen, std::vector<int>(200, 1));
}

TEST(Loader, WithoutShuffleKeepsTheOrder) {
  Loader loader(images(), {.batch = 25, .shuffle = false});
  const Epoch epoch = run_epoch(loader, 2);

  EXPECT_EQ(epoch.labels, images().labels);
  for (size_t i = 0; i < epoch.images.size(); ++i) {
    ASSERT_EQ(epoch.images[i], static_cast<float>(images().pixels[i] / 255.0));
  }
}

TEST(Loader, LastBatchIsShortOrDropped) {
  for (const int workers : {0, 2}) {
    Loader all(images(), {.batch = 50, .shuffle = false, .layout = Layout::kChwn, .workers = workers});
    Loader full(images(), {.batch = 50, .drop_last = true, .workers = workers});
    Loader one(images(), {.batch = 500, .workers = workers});
    Loader none(images(), {.batch = 500, .drop_last = true, .workers = workers});

    EXPECT_EQ(all.batches(), 3);
    EXPECT_EQ(run_epoch(all, 0).counts, std::vector<int64_t>({50, 50, 3}));
    EXPECT_EQ(run_epoch(full, 0).counts, std::vector<int64_t>({50, 50}));
    EXPECT_EQ(run_epoch(one, 0).counts, std::vector<int64_t>({103}));
    EXPECT_EQ(run_epoch(none, 0).counts, std::vector<int64_t>());
  }
}

TEST(Loader, TensorsHaveTheSpecOfTheirBatch) {
  Loader loader(images(), {.batch = 100, .dtype = DType::kBf16, .layout = Layout::kChwn});
  Batch batch;
  loader.start_epoch(0);

  ASSERT_TRUE(loader.next(batch));
  EXPECT_EQ(batch.images.spec(), loader.image_spec());
  EXPECT_EQ(batch.images.spec(), TensorSpec(Shape({100, 3, 8, 6}), DType::kBf16, Layout::kChwn));
  EXPECT_EQ(batch.labels.spec(), TensorSpec(Shape({100}), DType::kI64));
  EXPECT_EQ(batch.images.value->memory_class, MemoryClass::kInput);
  ASSERT_TRUE(loader.next(batch));
  EXPECT_EQ(batch.images.shape(), Shape({3, 3, 8, 6}));
  EXPECT_EQ(batch.labels.shape(), Shape({3}));
  EXPECT_FALSE(loader.next(batch));
  EXPECT_FALSE(loader.next(batch));
}

TEST(Loader, VersionsChangeWhenABatchIsTakenBack) {
  for (const int workers : {0, 2}) {
    Loader loader(images(), {.batch = 10, .workers = workers});
    Batch kept, other;
    loader.start_epoch(0);
    ASSERT_TRUE(loader.next(kept));
    const uint32_t image_version = kept.images.value->version(), label_version = kept.labels.value->version();
    const std::vector<float> copy(kept.images.data<float>().begin(), kept.images.data<float>().end());
    EXPECT_TRUE(std::equal(copy.begin(), copy.end(), kept.images.data<float>().begin()));

    ASSERT_TRUE(loader.next(other));

    EXPECT_NE(kept.images.value->version(), image_version);
    EXPECT_NE(kept.labels.value->version(), label_version);
    const uint32_t second = other.images.value->version();
    loader.start_epoch(1);
    EXPECT_NE(other.images.value->version(), second);
  }
}

TEST(Loader, BatchStaysAsItIsUntilTheNextIsAskedFor) {
  Loader alone(images(), augmented(Layout::kNchw, 0, 1));
  const Epoch expected = run_epoch(alone, 0);
  Loader loader(images(), augmented(Layout::kNchw, 2, 1));
  Batch batch;
  loader.start_epoch(0);
  auto from = expected.images.begin();
  while (loader.next(batch)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the workers fill all that they may
    const auto found = batch.images.data<float>();
    ASSERT_TRUE(std::equal(found.begin(), found.end(), from));
    from += static_cast<std::ptrdiff_t>(found.size());
  }
}

TEST(Loader, ReusesItsMemory) {
  for (const int workers : {0, 2}) {
    Loader loader(images(), {.batch = 10, .workers = workers, .prefetch = 2});
    std::set<const void*> addresses;
    int64_t before = 0;
    for (int64_t epoch = 0; epoch < 4; ++epoch) {
      if (epoch == 1) before = cpu_memory().stats().allocations;
      Batch batch;
      loader.start_epoch(epoch);
      while (loader.next(batch)) {
        if (batch.count == 10) addresses.insert(batch.images.value->data);
      }
    }
    EXPECT_EQ(cpu_memory().stats().allocations, before);
    EXPECT_EQ(addresses.size(), workers == 0 ? 1u : 3u);
  }
}

TEST(Loader, CanBeLeftAtAnyPoint) {
  for (int64_t taken = 0; taken < 12; ++taken) {
    Loader loader(images(), augmented(Layout::kNchw, 3, 4));
    const Epoch expected = run_epoch(loader, 1);
    Batch batch;
    loader.start_epoch(0);
    for (int64_t i = 0; i < taken; ++i) loader.next(batch);
    EXPECT_TRUE(run_epoch(loader, 1) == expected);
    loader.start_epoch(2);
    for (int64_t i = 0; i < taken; ++i) loader.next(batch);
  }
}

TEST(Loader, RethrowsWhatAWorkerThrows) {
  for (const int workers : {0, 1, 3}) {
    Dataset set = synthetic({.image = {1, 4, 4}, .count = 40});
    Loader loader(set, {.batch = 10, .shuffle = false, .workers = workers});
    set.labels[25] = 10;  // before an epoch is started, when nothing is read
    Batch batch;

    for (int64_t epoch = 0; epoch < 4; epoch += 2) {
      loader.start_epoch(epoch);
      EXPECT_TRUE(loader.next(batch));
      EXPECT_TRUE(loader.next(batch));
      EXPECT_THROW(loader.next(batch), Error);
      EXPECT_FALSE(loader.next(batch));
      loader.start_epoch(epoch + 1);  // left with the error not asked for
      EXPECT_TRUE(loader.next(batch));
    }
  }
}

TEST(Loader, RefusesWhatMakesNoSense) {
  Dataset set = synthetic({.image = {1, 4, 4}, .count = 4});
  const auto make = [&](const LoaderOptions& options) { Loader(set, options); };
  EXPECT_THROW(make({.batch = 0}), Error);
  EXPECT_THROW(make({.workers = -1}), Error);
  EXPECT_THROW(make({.prefetch = 0}), Error);
  EXPECT_THROW(make({.augmentation = {4, false}}), Error);
  EXPECT_THROW(make({.dtype = DType::kI32}), Error);

  Loader loader(set, {.batch = 2});
  Batch batch;
  EXPECT_THROW(loader.next(batch), Error);
  EXPECT_THROW(loader.start_epoch(-1), Error);
  set.labels.pop_back();
  EXPECT_THROW(loader.start_epoch(0), Error);
  EXPECT_THROW(make({}), Error);
  const Dataset empty = synthetic({.image = {1, 4, 4}, .count = 0});
  EXPECT_THROW(Loader(empty, {}), Error);
}

}  // namespace
}  // namespace plumb::datasets
