#include "tests/support/trainings.h"

#include <gtest/gtest.h>

#include <array>
#include <string_view>

#include "dispatch/kernel_cache.h"
#include "ops/convert.h"
#include "ops/random.h"
#include "optim/make.h"
#include "tests/support/compare.h"
#include "train/training_step.h"

namespace plumb::test {
namespace {

// How often the allocator was asked, a kernel looked up, and an op recorded on the tape.
std::array<uint64_t, 3> counts() {
  return {static_cast<uint64_t>(cpu_memory().stats().allocations), cache_lookups(), detail::ctx.sequence};
}

}  // namespace

Trained train(const Training& run, Device device, bool is_captured) {
  const DeviceScope on(device);
  const auto network = models::make_network(run.model, 7);
  optim::Settings settings;
  settings.learning_rate = 1e-3;
  if (std::string_view(run.optimizer) == "adam") {
    // Keras's epsilon is 1e-7. By PyTorch's 1e-8 the rounding of a gradient of that size, about 1e-10, moves a weight
    // by a per cent of the step, so that how far devices lie apart would be a matter of luck.
    settings.convention = Convention::kKeras;
  } else {
    settings.momentum = 0.9;
  }
  const auto optimizer = optim::make(run.optimizer, network->trainable(), settings);
  Generator generator(3);
  const auto mode = is_captured ? training::StepMode::kCaptured : training::StepMode::kEager;
  training::TrainingStep step(*network, *optimizer, generator, mode);
  Trained t;
  const Shape& image = network->input();
  for (int i = 0; i < run.steps; ++i) {
    if (i == run.steps / 2) optimizer->set_learning_rate(2e-4);
    const int64_t n = run.batch - (run.batch > 2 && i % 3 == 2);
    const auto seed = static_cast<uint64_t>(i);
    // Drawn in one layout, for numbers are drawn in the order in which they lie.
    const Tensor drawn =
        uniform(TensorSpec(Shape{n, image[0], image[1], image[2]}, DType::kF32, Layout::kNhwc), 0, 1, seed);
    const Tensor images = to(to(drawn, run.layout), run.dtype);
    const Tensor labels = uniform(TensorSpec(Shape{n}, DType::kI64), 0, 9, seed + 1000);
    const auto before = counts();
    t.losses.push_back(step(images, labels)[0].item());
    if (is_captured && device.is_cpu() && i > 2) {  // both batch sizes are captured by then
      EXPECT_EQ(counts(), before) << "a replay asked the allocator, looked up kernels or recorded on the tape";
    }
  }
  for (const auto* list : {&network->parameters(), &network->buffers()}) {
    for (const auto& named : *list) t.state.push_back(on_host(named.tensor));
  }
  for (const auto& [name, tensor] : optimizer->state()) t.state.push_back(on_host(tensor));
  t.state.push_back(on_host(generator.state));
  return t;
}

void expect_same(const Trained& got, const Trained& expected) {
  EXPECT_EQ(got.losses, expected.losses);
  ASSERT_EQ(got.state.size(), expected.state.size());
  for (size_t i = 0; i < got.state.size(); ++i)
    EXPECT_TRUE(bitwise_equal(got.state[i], expected.state[i])) << "tensor " << i;
}

void expect_close(const Trained& got, const Trained& expected, double bound) {
  ASSERT_EQ(got.losses.size(), expected.losses.size());
  for (size_t i = 0; i < got.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], expected.losses[i], bound * 10) << "loss " << i;
  ASSERT_EQ(got.state.size(), expected.state.size());
  for (size_t i = 0; i < got.state.size(); ++i)
    EXPECT_TRUE(close(got.state[i], expected.state[i], bound)) << "tensor " << i;
}

}  // namespace plumb::test
