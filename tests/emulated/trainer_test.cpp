// Training and its trace, on a device that is not the thread's own.
#include "train/trainer.h"

#include <gtest/gtest.h>

#include <optional>

#include "core/runtime.h"
#include "data/synthetic.h"
#include "graph/program.h"
#include "kernels/cuda/emulator/runtime.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "optim/make.h"
#include "tests/support/compare.h"
#include "train/fastest_layout.h"
#include "train/profile.h"

namespace plumb::training {
namespace {

constexpr Device kDevice{DeviceType::kCuda, 0};

// Dropout takes its generator where the network is.
TEST(EmulatedTrainerTest, AllThatItMakesIsOnTheNetworksDevice) {
  const auto mnist = datasets::synthetic_like("mnist", datasets::Split::kTrain, 0, 4);
  std::unique_ptr<models::Network> network;
  {
    const DeviceScope on(kDevice);
    network = models::make_network("lenet");
  }
  EXPECT_NO_THROW(fastest_layout(*network, DType::kF32, 4));
  auto optimizer = optim::make(optim::Kind::kAdam, network->trainable(), {});
  Trainer trainer(std::move(network), std::move(optimizer), mnist, mnist, {.batch = 4});
  for (const auto& [name, tensor] : trainer.state()) EXPECT_EQ(tensor.device(), kDevice) << name;
  EXPECT_NO_THROW(trainer.run_epoch(0));
}

TEST(EmulatedTrainerTest, AFunctionIsCapturedOnItsOwnDevice) {
  std::optional<StaticFunction> next;
  {
    const DeviceScope on(kDevice);
    next.emplace([](std::span<const Tensor> in) { return in[0] + full(Shape{1}, 1, DType::kF32); });
  }
  const Tensor x = full(Shape{2}, 3, DType::kF32);
  EXPECT_EQ((*next)({x})[0].at({1}), 4);
}

// Each device has a clock of its own.
TEST(EmulatedTrainerTest, TheTraceHoldsTheKernelsOfTwoDevices) {
  const Device other = add_device(emulator::make_runtime());
  Profile profile;
  {
    const ObserverScope watch(&profile);
    for (const Device device : {kDevice, other, kDevice}) {
      const DeviceScope on(device);
      const Tensor x = full(Shape{8}, 1, DType::kF32);
      add(x, x);
    }
  }
  std::string trace;
  ASSERT_NO_THROW(trace = profile.trace());
  size_t found = 0;
  for (size_t at = 0; (at = trace.find("\"name\":\"add\"", at)) != std::string::npos; ++at) ++found;
  EXPECT_EQ(found, 3u) << trace;
}

}  // namespace
}  // namespace plumb::training
