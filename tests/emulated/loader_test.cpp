// A loader for a device gives the batches that it gives for the host, made there from bytes.
#include "data/loader.h"

#include <gtest/gtest.h>

#include "data/synthetic.h"
#include "ops/convert.h"
#include "tests/support/compare.h"

namespace plumb::datasets {
namespace {

const Device kDevice{DeviceType::kCuda, 0};

TEST(DeviceLoaderTest, GivesTheBatchesOfTheHost) {
  const Dataset set = synthetic({.image = {3, 12, 9}, .classes = 10, .count = 50});
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    for (const Layout layout : {Layout::kNchw, Layout::kNhwc, Layout::kChwn}) {
      LoaderOptions options{.batch = 16,
                            .augmentation = Augmentation::cifar(),
                            .normalization = Normalization::imagenet(),
                            .dtype = dtype,
                            .layout = layout,
                            .seed = 3,
                            .workers = 2};
      Loader host(set, options);
      options.device = kDevice;
      Loader device(set, options);
      for (const int64_t epoch : {0, 1}) {
        host.start_epoch(epoch);
        device.start_epoch(epoch);
        Batch here, there;
        while (host.next(here)) {
          ASSERT_TRUE(device.next(there));
          EXPECT_EQ(there.count, here.count);
          EXPECT_EQ(there.images.device(), kDevice);
          EXPECT_TRUE(test::bitwise_equal(to(there.images, Device{}), here.images));
          EXPECT_TRUE(test::bitwise_equal(to(there.labels, Device{}), here.labels));
        }
        EXPECT_FALSE(device.next(there));
      }
    }
  }
}

TEST(DeviceLoaderTest, CopiesBytesAndNotNumbers) {
  const Dataset set = synthetic({.image = {3, 32, 32}, .classes = 10, .count = 64});
  Loader loader(set, {.batch = 32, .workers = 0, .device = kDevice});
  loader.start_epoch(0);
  Batch batch;
  const DeviceCounts before = runtime_of(kDevice).counts();
  ASSERT_TRUE(loader.next(batch));
  const DeviceCounts after = runtime_of(kDevice).counts();
  EXPECT_EQ(after.to_device.count - before.to_device.count, 1);
  EXPECT_LE(after.to_device.bytes - before.to_device.bytes, 32 * (3 * 32 * 32 + 12 + 8) + 128);
  EXPECT_EQ(after.to_host.count, before.to_host.count);
  EXPECT_EQ(after.waits, before.waits);
}

}  // namespace
}  // namespace plumb::datasets
