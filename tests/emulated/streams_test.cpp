// Streams that work as late as they may: what does not wait for what it needs is seen.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/block.h"
#include "data/loader.h"
#include "data/synthetic.h"
#include "kernels/cuda/emulator/runtime.h"
#include "models/network.h"
#include "ops/convert.h"
#include "ops/elementwise.h"
#include "ops/fill.h"
#include "optim/sgd.h"
#include "tests/support/compare.h"
#include "tests/support/tensors.h"
#include "train/training_step.h"

namespace plumb {
namespace {

using emulator::Pace;

Device device_of(Pace pace) {
  static const Device all[] = {add_device(emulator::make_runtime(2, Pace::kAtOnce)),
                               add_device(emulator::make_runtime(2, Pace::kCopiesLate)),
                               add_device(emulator::make_runtime(2, Pace::kCopiesFirst))};
  return all[static_cast<int>(pace)];
}
class Paces : public testing::TestWithParam<Pace> {
 protected:
  Device device() const { return device_of(GetParam()); }
};
std::string name_of(const testing::TestParamInfo<Pace>& p) {
  return p.param == Pace::kAtOnce ? "at_once" : p.param == Pace::kCopiesLate ? "copies_late" : "copies_first";
}
INSTANTIATE_TEST_SUITE_P(Streams, Paces, testing::Values(Pace::kAtOnce, Pace::kCopiesLate, Pace::kCopiesFirst),
                         name_of);

// A block of pinned memory of a device.
struct Pinned {
  Runtime& runtime;
  size_t bytes;
  float* data;
  Pinned(Runtime& r, size_t n) : runtime(r), bytes(n * 4), data(static_cast<float*>(r.allocate_pinned(bytes))) {}
  ~Pinned() { runtime.release_pinned(data, bytes); }
};

TEST(StreamsTest, NothingIsDoneBeforeItIsWaitedFor) {
  Runtime& r = runtime_of(device_of(Pace::kCopiesLate));
  Pinned from(r, 1), back(r, 1);
  const detail::Block there = detail::block_of(4, MemoryClass::kInput, device_of(Pace::kCopiesLate));
  const auto event = r.make_event();
  *from.data = 1, *back.data = 0;
  r.copy(there.get(), from.data, 4, Runtime::Direction::kToDevice, r.copy_stream());
  r.copy(back.data, there.get(), 4, Runtime::Direction::kToHost, r.copy_stream());
  r.record(*event, r.copy_stream());
  EXPECT_FALSE(r.is_done(*event));
  EXPECT_EQ(*back.data, 0);
  *from.data = 2;  // too early: it is pinned, and the copy is still to come
  r.wait(r.stream());
  EXPECT_EQ(*back.data, 0) << "the streams do not wait for each other";
  r.follow(r.stream(), *event);
  r.wait(r.stream());
  EXPECT_TRUE(r.is_done(*event));
  EXPECT_EQ(*back.data, 2);
}

TEST(StreamsTest, CopiesThatAreFirstOvertakeKernels) {
  const Device d = device_of(Pace::kCopiesFirst);
  Runtime& r = runtime_of(d);
  Pinned from(r, 1);
  const Tensor x = to(full(Shape{1}, 1, DType::kF32), d);
  const auto before = r.make_event();
  const Tensor y = add(x, x);
  r.record(*before, r.stream());
  const Tensor z = add(x, x);
  *from.data = 7;
  r.follow(r.copy_stream(), *before);
  r.copy(x.value->data, from.data, 4, Runtime::Direction::kToDevice, r.copy_stream());
  EXPECT_EQ(y.item(), 2) << "the copy followed this one";
  EXPECT_EQ(z.item(), 14) << "and nothing kept it behind this one";
}

TEST_P(Paces, OpsAndCopiesOfTheKernelsStreamKeepTheirOrder) {
  const Tensor x = test::random_tensor(TensorSpec(Shape{33}), 1);
  Tensor there = to(x, device());
  const Tensor twice = add(there, there);
  there.copy_from(full(Shape{33}, 5, DType::kF32));  // memory of the host that is gone at once
  EXPECT_TRUE(test::bitwise_equal(to(twice, Device{}), add(x, x)));
  EXPECT_EQ(there.at({32}), 5);
}

TEST_P(Paces, LoadersGiveTheBatchesOfTheHost) {
  const datasets::Dataset set = datasets::synthetic({.image = {3, 12, 9}, .classes = 10, .count = 50});
  for (const int workers : {0, 1, 3}) {
    datasets::LoaderOptions options{.batch = 8,
                                    .augmentation = datasets::Augmentation::cifar(),
                                    .normalization = datasets::Normalization::imagenet(),
                                    .seed = 3,
                                    .workers = workers};
    datasets::Loader host(set, options);
    options.device = device();
    datasets::Loader loader(set, options);
    for (const int64_t epoch : {0, 1}) {
      host.start_epoch(epoch);
      loader.start_epoch(epoch);
      datasets::Batch here, there;
      std::vector<Tensor> images, labels;  // read at the end of an epoch: until then nothing is waited for
      std::vector<Tensor> right_images, right_labels;
      while (host.next(here)) {
        ASSERT_TRUE(loader.next(there));
        images.push_back(there.images.clone());
        labels.push_back(there.labels.clone());
        right_images.push_back(here.images.clone());
        right_labels.push_back(here.labels.clone());
      }
      EXPECT_FALSE(loader.next(there));
      for (size_t i = 0; i < images.size(); ++i) {
        EXPECT_TRUE(test::bitwise_equal(to(images[i], Device{}), right_images[i])) << "batch " << i;
        EXPECT_TRUE(test::bitwise_equal(to(labels[i], Device{}), right_labels[i])) << "batch " << i;
      }
    }
  }
}

TEST_P(Paces, CopiesBetweenDevicesComeAfterWhatWasAndBeforeWhatComes) {
  for (const Pace pace : {Pace::kAtOnce, Pace::kCopiesLate, Pace::kCopiesFirst}) {
    const Device other = pace == GetParam() ? Device{DeviceType::kCuda, 0} : device_of(pace);
    const DeviceCounts before = runtime_of(other).counts();
    const Tensor ones = full(Shape{9}, 1, DType::kF32), nines = full(Shape{9}, 9, DType::kF32);
    Tensor x = to(ones, device()), y = to(nines, other);
    const Tensor ten = add(y, to(ones, other));  // reads y before the copy writes it
    x.copy_from(add(x, x));
    y.copy_from(x);  // 2
    x.copy_from(nines);
    const Tensor four = add(y, y);
    y.copy_from(x);
    EXPECT_EQ(x.at({8}), 9);
    EXPECT_EQ(four.at({0}), 4);
    EXPECT_EQ(ten.at({4}), 10);
    EXPECT_EQ(y.at({1}), 9);
    const DeviceCounts now = runtime_of(other).counts();
    EXPECT_EQ(now.from_peer.count - before.from_peer.count, 2);
    EXPECT_EQ(now.from_peer.bytes - before.from_peer.bytes, 2 * 9 * 4);
  }
}

TEST_P(Paces, TrainingGivesTheSameNumbers) {
  const auto weights_after = [](Device d) {
    const DeviceScope on(d);
    const auto network = models::make_network("lenet");
    const datasets::Dataset set = datasets::synthetic({.image = {1, 28, 28}, .classes = 10, .count = 24});
    datasets::Loader loader(set, {.batch = 4, .seed = 5, .workers = 2, .device = d});
    std::vector<Tensor> parameters;
    for (const models::NamedTensor& p : network->parameters()) parameters.push_back(p.tensor);
    optim::Sgd optimizer(parameters, {.learning_rate = 0.1});
    Generator generator(1);
    training::TrainingStep step(*network, optimizer, generator, training::StepMode::kCaptured);
    loader.start_epoch(0);
    datasets::Batch batch;
    while (loader.next(batch)) step(batch.images, batch.labels);
    std::vector<Tensor> all;
    for (const Tensor& p : parameters) all.push_back(to(p.detached(), Device{}));
    return all;
  };
  const auto at_once = weights_after({DeviceType::kCuda, 0}), late = weights_after(device());
  ASSERT_EQ(at_once.size(), late.size());
  for (size_t i = 0; i < late.size(); ++i) EXPECT_TRUE(test::bitwise_equal(late[i], at_once[i])) << "parameter " << i;
}

}  // namespace
}  // namespace plumb
