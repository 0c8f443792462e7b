// A warm training step asks nothing of the system: no call of our own to malloc, no mapping, no page fault; and it
// leaves no live bytes behind. This binary counts with its own malloc, so sanitizers, which have theirs, leave it out.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

#include "data/loader.h"
#include "data/synthetic.h"
#include "dispatch/recorder.h"
#include "optim/make.h"
#include "tests/properties/system_calls.h"
#include "train/training_step.h"

namespace plumb {
namespace {

using test::system_calls_of;
using test::system_calls_so_far;
using test::SystemCalls;

struct Case {
  const char *model, *optimizer;
  DType dtype;
  int64_t batch;
  int steps;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.model; }
};

// Training on shuffled, augmented images in epochs of two batches and a half, with a learning rate that falls.
class Training {
 public:
  Training(const Case& c, bool is_captured)
      : network_(models::make_network(c.model, 1)),
        optimizer_(optim::make(c.optimizer, network_->trainable(), {.learning_rate = 1e-3})),
        images_(datasets::synthetic(
            {.image = network_->input(), .classes = network_->classes(), .count = 5 * c.batch / 2})),
        loader_(images_, {.batch = c.batch,
                          .augmentation = datasets::Augmentation::cifar(),
                          .dtype = c.dtype,
                          .layout = Layout::kNhwc}),
        step_(*network_, *optimizer_, generator_,
              is_captured ? training::StepMode::kCaptured : training::StepMode::kEager) {}

  void operator()() {
    if (steps_ % loader_.batches() == 0) loader_.start_epoch(steps_ / loader_.batches());
    loader_.next(batch_);
    optimizer_->set_learning_rate(1e-3 / static_cast<double>(++steps_));
    loss_ = step_(batch_.images, batch_.labels)[0].item();
  }
  double loss() const { return loss_; }
  const models::Network& network() const { return *network_; }

 private:
  std::unique_ptr<models::Network> network_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  datasets::Dataset images_;
  datasets::Loader loader_;
  datasets::Batch batch_;
  Generator generator_{4};
  training::TrainingStep step_;
  int64_t steps_ = 0;
  double loss_ = 0;
};

// Page faults inside kernels for which a library allocated. oneDNN 3 does so in every run of some, with an alignment,
// and glibc before 2.38 does not find such blocks again when they were freed (its bug 14581): the heap grows by pages.
class LibraryFaults final : public Observer {
 public:
  void before(const PreparedKernel&) override { before_ = system_calls_so_far(); }
  void after(const PreparedKernel&, const Launch&) override {
    const SystemCalls now = system_calls_so_far();
    if (now.library_allocations > before_.library_allocations) count += now.page_faults - before_.page_faults;
  }
  int64_t count = 0;

 private:
  SystemCalls before_;
};

class WarmSteps : public testing::TestWithParam<std::tuple<Case, bool>> {};

TEST_P(WarmSteps, AskNothingOfTheSystem) {
  const auto& [c, is_captured] = GetParam();
  Training train(c, is_captured);
  LibraryFaults of_libraries;
  const ObserverScope watch(&of_libraries);
  const auto steps = [&](int n) {
    of_libraries.count = 0;
    return system_calls_of([&train, n] {
      for (int i = 0; i < n; ++i) train();
    });
  };
  steps(6);  // two epochs
  const MemoryStats before = cpu_memory().stats();

  // Memory of ours that is fresh faults in every step. What the system does by itself, or code that has not run before,
  // such as the slow path of a lock, faults now and then: not in each of three rounds.
  int64_t page_faults = 1;
  for (int round = 0; round < 3 && page_faults > 0; ++round) {
    const SystemCalls calls = steps(c.steps);
    EXPECT_EQ(calls.allocations, 0) << "called from" << calls.callers;
    EXPECT_EQ(calls.maps, 0);
    EXPECT_LT(of_libraries.count, 4 * c.steps) << "an activation has more pages";
    page_faults = calls.page_faults - of_libraries.count;
  }
  EXPECT_EQ(page_faults, 0);

  const MemoryStats after = cpu_memory().stats();
  EXPECT_EQ(after.system_allocations, before.system_allocations);
  EXPECT_EQ(after.live_bytes, before.live_bytes) << "a step leaves live bytes behind";
  EXPECT_TRUE(std::isfinite(train.loss()));
}

// What lives after a step is what lived before the first one, and what is kept to make the next one fast.
TEST_P(WarmSteps, LeaveNoActivationsAndNoGradients) {
  const auto& [c, is_captured] = GetParam();
  Training train(c, is_captured);
  MemoryStats::ByClass expected = cpu_memory().stats().live_bytes;
  if (c.dtype == DType::kBf16) {  // a step keeps the parameters in bf16 as well, and nothing else of theirs
    const models::RoundedParameters rounded(train.network());
    expected = cpu_memory().stats().live_bytes;
  }

  train();

  const MemoryStats::ByClass live = cpu_memory().stats().live_bytes;
  for (const MemoryClass kept : {MemoryClass::kWorkspace, MemoryClass::kPack})
    expected[static_cast<size_t>(kept)] = live[static_cast<size_t>(kept)];
  if (is_captured) {  // the program's own inputs and its arena
    for (const MemoryClass own : {MemoryClass::kInput, MemoryClass::kActivation})
      expected[static_cast<size_t>(own)] = live[static_cast<size_t>(own)];
  }
  EXPECT_EQ(live, expected);
}

std::string name_of(const testing::TestParamInfo<std::tuple<Case, bool>>& info) {
  const auto& [c, is_captured] = info.param;
  return message("{}_{}_{}_{}", c.model, c.optimizer, c.dtype, is_captured ? "captured" : "eager");
}
constexpr Case kCases[] = {
    {"lenet", "sgd", DType::kF32, 32, 100},     {"lenet", "adam", DType::kF32, 32, 100},
    {"lenet", "rmsprop", DType::kF32, 32, 100}, {"lenet", "adam", DType::kBf16, 32, 30},
    {"resnet20", "adam", DType::kF32, 4, 100},  {"resnet20", "sgd", DType::kBf16, 2, 10},
};
INSTANTIATE_TEST_SUITE_P(, WarmSteps, testing::Combine(testing::ValuesIn(kCases), testing::Bool()), name_of);

// That the counting counts.

// A pointer that somebody could look at, so that the compiler does not leave out what made it.
void* seen(void* p) {
  static void* volatile last;
  last = p;
  return last;
}

TEST(SystemCallsTest, AreCountedForThisProgram) {
  std::string text;
  const auto asked_by = [](auto work) { return system_calls_of(work).allocations; };
  EXPECT_EQ(asked_by([] {}), 0);
  EXPECT_EQ(asked_by([&] { text.reserve(1000); }), 1);
  EXPECT_EQ(asked_by([] { std::free(seen(std::malloc(10))); }), 1);
  EXPECT_EQ(asked_by([] { std::free(seen(std::calloc(3, 3))); }), 1);
  EXPECT_EQ(asked_by([] { std::free(seen(std::aligned_alloc(64, 64))); }), 1);
  EXPECT_EQ(asked_by([] { ::operator delete(seen(::operator new(10))); }), 1);
  EXPECT_FALSE(system_calls_of([&] { text.reserve(5000); }).callers.empty());

  const SystemCalls mapped = system_calls_of([] {
    constexpr size_t kBytes = 8 * 4096;
    void* fresh = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(fresh, 1, kBytes);
    munmap(fresh, kBytes);
  });
  EXPECT_EQ(mapped.maps, 2);
  EXPECT_GE(mapped.page_faults, 8);

  const auto maps_of = [](auto work) { return system_calls_of(work).maps; };
  constexpr int kPage = 4096;
  void* page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(maps_of([&] { madvise(page, kPage, MADV_NORMAL); }), 1);
  EXPECT_EQ(maps_of([&] { page = mremap(page, kPage, 2 * kPage, MREMAP_MAYMOVE); }), 1);
  std::memset(page, 1, 2 * kPage);
  munmap(page, 2 * kPage);
  EXPECT_EQ(maps_of([] { sbrk(kPage); }), 1);
  EXPECT_EQ(maps_of([] { sbrk(-kPage); }), 1);
}

// The counts so far are those of the work alone, and grow with it.
TEST(SystemCallsTest, AreKnownDuringTheWork) {
  SystemCalls first, second;
  system_calls_of([&] {
    std::free(seen(std::malloc(10)));
    first = system_calls_so_far();
    std::free(seen(std::malloc(10)));
    second = system_calls_so_far();
  });
  EXPECT_EQ(first.allocations, 1);
  EXPECT_EQ(second.allocations, 2);
}

}  // namespace
}  // namespace plumb
