#include "kernels/cuda/vendor/why_no_device.h"

#include <gtest/gtest.h>

namespace plumb::cuda {
namespace {

TEST(WhyNoDeviceTest, OneSentenceEach) {
  const Found found{.status = 100,
                    .status_text = "no CUDA-capable device is detected",
                    .driver = 13000,
                    .runtime = 13000,
                    .oldest = 80};
  EXPECT_EQ(why_no_device(found), "CUDA finds no GPU (no CUDA-capable device is detected)");

  Found f = found;
  f.driver = 0;
  EXPECT_EQ(why_no_device(f), "there is no CUDA driver (libcuda.so.1) on this machine");

  f = found;
  f.driver = 12020;
  EXPECT_EQ(why_no_device(f), "the driver is of CUDA 12.2, and this program was built with 13.0; update the driver");
  f.runtime = 12080;  // minor versions go together
  EXPECT_EQ(why_no_device(f), "CUDA finds no GPU (no CUDA-capable device is detected)");

  f = found;
  f.visible = "";
  EXPECT_EQ(why_no_device(f), "CUDA_VISIBLE_DEVICES is empty, which hides every GPU");
  f.visible = "7";
  EXPECT_EQ(why_no_device(f),
            "CUDA finds no GPU (no CUDA-capable device is detected), CUDA_VISIBLE_DEVICES being \"7\"");

  f = found;
  f.status = 0;
  f.too_old = DeviceProperties{.name = "Tesla V100", .capability = 70};
  EXPECT_EQ(why_no_device(f), "Tesla V100 has compute capability 7.0, and the kernels need 8.0");
}

}  // namespace
}  // namespace plumb::cuda
