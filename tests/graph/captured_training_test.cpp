// Captured training is eager training: bit for bit, over 50 steps, for every kind of optimizer, with dropout, running
// statistics, a learning rate that changes and a short last batch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "graph/program.h"
#include "models/network.h"
#include "ops/fill.h"
#include "ops/random.h"
#include "optim/make.h"
#include "tests/support/training.h"

namespace plumb {
namespace {

struct Outcome {
  std::vector<double> losses;
  std::vector<uint64_t> fingerprints;  // of every parameter, buffer and state at the end
};

// FNV-1a by words of eight bytes, in lanes that do not wait for each other.
uint64_t fingerprint(const Tensor& t) {
  constexpr size_t kLanes = 8;
  uint64_t lanes[kLanes];
  std::fill_n(lanes, kLanes, 0xcbf29ce484222325ull);
  const auto take = [&](size_t lane, const char* from, size_t bytes) {
    uint64_t word = 0;
    std::memcpy(&word, from, bytes);
    lanes[lane] = (lanes[lane] ^ word) * 0x100000001b3ull;
  };
  const auto* p = static_cast<const char*>(t.value->data);
  const size_t words = t.bytes() / 8, whole = words - words % kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) take(lane, p + 8 * (i + lane), 8);
  }
  for (size_t i = whole; i < words; ++i) take(i - whole, p + 8 * i, 8);
  take(kLanes - 1, p + 8 * words, t.bytes() % 8);
  uint64_t h = 0;
  for (const uint64_t lane : lanes) h = (h ^ lane) * 0x100000001b3ull;
  return h;
}

#ifdef PLUMB_SANITIZED
constexpr int64_t kBatch = 2, kShortBatch = 1;
#else
constexpr int64_t kBatch = 4, kShortBatch = 3;
#endif

Outcome train(const std::string& model, const std::string& optimizer_name, int steps, bool captured) {
  const auto network = models::make_network(model, 7);
  optim::Settings settings;
  settings.learning_rate = 1e-3;
  if (optimizer_name != "adam") settings.momentum = 0.9;
  const auto optimizer = optim::make(optimizer_name, network->trainable(), settings);
  Generator generator(3);
  const auto step = [&](std::span<const Tensor> in) { return test::train_step(*network, *optimizer, generator, in); };
  StaticFunction replayed(step);

  Outcome o;
  const Shape& image = network->input();
  int64_t allocations = 0, lookups = 0;
  uint64_t nodes = 0;
  for (int i = 0; i < steps; ++i) {
    if (i == 2 * steps / 5) optimizer->set_learning_rate(2e-4);
    const int64_t n = i % 5 == 4 ? kShortBatch : kBatch;
    const auto seed = static_cast<uint64_t>(i);
    const Tensor x =
        uniform(TensorSpec(Shape{n, image[0], image[1], image[2]}, DType::kF32, Layout::kNhwc), 0, 1, seed);
    const Tensor labels = uniform(TensorSpec(Shape{n}, DType::kI64), 0, 9, seed + 1000);
    const std::vector<Tensor> in{x, labels};
    const auto before = cpu_memory().stats().allocations;
    const auto lookups_before = static_cast<int64_t>(cache_lookups());
    const uint64_t nodes_before = detail::ctx.sequence;
    o.losses.push_back((captured ? replayed(in) : step(in))[0].item());
    if (i >= 5) {  // both batch sizes are captured by then
      allocations += cpu_memory().stats().allocations - before;
      lookups += static_cast<int64_t>(cache_lookups()) - lookups_before;
      nodes += detail::ctx.sequence - nodes_before;
    }
  }
  if (captured) {
    EXPECT_EQ(allocations, 0) << "a replay asked the allocator";
    EXPECT_EQ(lookups, 0) << "a replay looked up kernels";
    EXPECT_EQ(nodes, 0u) << "a replay recorded on the tape";
  }
  for (const auto* list : {&network->parameters(), &network->buffers()}) {
    for (const auto& t : *list) o.fingerprints.push_back(fingerprint(t.tensor));
  }
  for (const auto& [name, tensor] : optimizer->state()) o.fingerprints.push_back(fingerprint(tensor));
  o.fingerprints.push_back(fingerprint(generator.state));
  return o;
}

using Run = std::tuple<const char*, const char*, int>;  // the network, the optimizer, the steps

class CapturedTraining : public testing::TestWithParam<Run> {};

std::string name_of(const testing::TestParamInfo<Run>& run) {
  return std::string(std::get<0>(run.param)) + "_" + std::get<1>(run.param);
}

TEST_P(CapturedTraining, IsBitwiseEagerTraining) {
  const auto [model, optimizer, steps] = GetParam();

  const Outcome eager = train(model, optimizer, steps, false);
  const Outcome captured = train(model, optimizer, steps, true);

  EXPECT_EQ(eager.losses, captured.losses);
  EXPECT_EQ(eager.fingerprints, captured.fingerprints);
  EXPECT_NE(eager.losses.front(), eager.losses.back());
}

// A large network goes no other way than the small ones: one of them, until the short batch is replayed too.
constexpr const char* kOptimizers[] = {"sgd", "adam", "rmsprop"};
INSTANTIATE_TEST_SUITE_P(LeNet, CapturedTraining,
                         testing::Combine(testing::Values("lenet"), testing::ValuesIn(kOptimizers),
                                          testing::Values(50)),
                         name_of);
#ifdef PLUMB_SANITIZED
INSTANTIATE_TEST_SUITE_P(ResNet, CapturedTraining, testing::Values(Run("resnet20", "rmsprop", 10)), name_of);
#else
INSTANTIATE_TEST_SUITE_P(ResNet, CapturedTraining,
                         testing::Combine(testing::Values("resnet20"), testing::ValuesIn(kOptimizers),
                                          testing::Values(50)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Large, CapturedTraining, testing::Values(Run("vgg16", "adam", 10)), name_of);
#endif

}  // namespace
}  // namespace plumb
