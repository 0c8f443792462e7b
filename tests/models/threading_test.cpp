// Several threads train networks of their own at the same time, with kernels shared: each gets bit for bit what it gets
// alone. Under ThreadSanitizer, what they share is watched.
#include <gtest/gtest.h>

#include <thread>

#include "data/loader.h"
#include "data/synthetic.h"
#include "optim/make.h"
#include "tests/support/compare.h"
#include "train/training_step.h"

namespace plumb {
namespace {

struct Run {
  uint64_t seed;
  Layout layout;
  const char* optimizer;
  training::StepMode mode;
};
constexpr Run kRuns[] = {{1, Layout::kNhwc, "sgd", training::StepMode::kEager},
                         {2, Layout::kNhwc, "adam", training::StepMode::kCaptured},
                         {3, Layout::kNchw, "rmsprop", training::StepMode::kEager}};
constexpr int64_t kBatch = 8, kImages = 20, kEpochs = 4;

// The losses, and the parameters at the end.
std::vector<Tensor> train(const Run& run) {
  const auto network = models::make_network("lenet", run.seed);
  const auto optimizer = optim::make(run.optimizer, network->trainable(), {.learning_rate = 1e-2});
  Generator generator(run.seed);
  training::TrainingStep step(*network, *optimizer, generator, run.mode);
  const datasets::Dataset images = datasets::synthetic({.image = network->input(), .count = kImages, .seed = run.seed});
  datasets::Loader loader(images, {.batch = kBatch, .layout = run.layout});

  std::vector<Tensor> results;
  datasets::Batch batch;
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    for (loader.start_epoch(epoch); loader.next(batch);) {
      const double loss = step(batch.images, batch.labels)[0].item();
      results.push_back(Tensor::from<float>({static_cast<float>(loss)}, Shape{}));
    }
  }
  for (const Tensor& w : network->trainable()) results.push_back(w.detached());
  return results;
}

TEST(Threads, TrainSeparateLenetsBitForBitAsAlone) {
  constexpr size_t kThreads = std::size(kRuns);
  std::vector<Tensor> together[kThreads];
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) threads.emplace_back([&, t] { together[t] = train(kRuns[t]); });
  for (std::thread& t : threads) t.join();
  const int64_t prepared = cache_stats().prepared;

  for (size_t t = 0; t < kThreads; ++t) {
    SCOPED_TRACE(t);
    const std::vector<Tensor> alone = train(kRuns[t]);

    ASSERT_EQ(together[t].size(), alone.size());
    for (size_t i = 0; i < alone.size(); ++i) EXPECT_TRUE(test::bitwise_equal(together[t][i], alone[i])) << i;
    EXPECT_NE(alone.front().item(), alone[kEpochs].item()) << "it does not learn";
  }
  EXPECT_EQ(cache_stats().prepared, prepared) << "kernels were not shared";
}

}  // namespace
}  // namespace plumb
