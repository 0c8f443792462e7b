// plumb plan, and what plumb says where there is no GPU.
#include <gmock/gmock.h>

#include "app/device_roofs.h"
#include "tests/app/command.h"

namespace plumb::app {
namespace {

class PlanCommandTest : public test::CommandTest {};

TEST_F(PlanCommandTest, PrintsAStepAndWritesIt) {
  const test::Outcome o = run("plan vgg16 --on h200 --layout nhwc --dtype bf16 --batch 32");
  EXPECT_EQ(o.status, 0) << o;
  EXPECT_THAT(o.out, testing::HasSubstr("on NVIDIA H200 (described: nothing runs)"));
  EXPECT_THAT(o.out, testing::HasSubstr("conv2d_backward_weight"));
  EXPECT_THAT(o.out, testing::HasSubstr("tensor_core"));

  const auto j = report_of("plan vgg16 --on h200 --batch 32");
  ASSERT_EQ(j["steps"].size(), 2u);
  EXPECT_EQ(j["device_name"], "NVIDIA H200");
  for (const auto& step : j["steps"]) {
    EXPECT_GT(step["kernels"].size(), 60u);
    double floor = 0;
    int launches = 0;
    for (const auto& k : step["kernels"]) floor += k["floor_us"].get<double>(), launches += k["launches"].get<int>();
    EXPECT_NEAR(step["floor_ms"].get<double>(), floor / 1e3, 1e-9);
    EXPECT_EQ(step["launches"].get<int>(), launches);
    EXPECT_GT(step["memory"]["parameter"].get<int64_t>(), 9'000'000 * 4);
  }
  write("own.json", app::device_description("a100"));
  EXPECT_EQ(report_of("plan lenet --on own.json --layout nchw --batch 8")["device_name"], "NVIDIA A100-SXM4-80GB");
}

TEST_F(PlanCommandTest, RefusesInOneSentence) {
  EXPECT_TRUE(refuses("plan vgg16", "--on"));
  EXPECT_TRUE(refuses("plan vgg16 --on h100", "\"h100\" is unknown; use a100 or h200, or FILE.json"));
  EXPECT_TRUE(refuses("plan vgg16 --on nowhere.json", "nowhere.json"));
  EXPECT_TRUE(refuses("plan lenet --on h200 --algorithm cudnn_e999", "cuDNN has no such plan for any kernel of lenet"));
  EXPECT_TRUE(refuses("plan vgg16 --on h200 --layout nhwc --algorithm cudnn_e74 --workspace 2",
                      "cuDNN has no such plan for any kernel of vgg16 in nhwc within a workspace of 2.0 MB"));
  EXPECT_TRUE(refuses("plan vgg16 --on h200 --workspace 0", "within a workspace of 0 bytes; allow at least "));
  EXPECT_TRUE(refuses("plan vgg16 --on h200 --workspace -1", "--workspace: -1 is too small"));
  EXPECT_TRUE(refuses("plan lenet --on h200 --algorithm cudnn_38", "--algorithm: \"cudnn_38\" is unknown"));
  EXPECT_TRUE(refuses("plan lenet --on h200 --dtype f16", "--dtype: \"f16\" is unknown"));
}

TEST_F(PlanCommandTest, RefusesADescriptionThatCudnnDoesNotTake) {
  write("small.json",
        R"({"deviceName": "x", "deviceVer": 900, "multiProcessorCount": 9, "totalGlobalMem": 9999999999})");
  EXPECT_TRUE(test::is_refusal(run("plan lenet --on small.json"), "refuses the description of the device"));
  write("cut.json", "{\"deviceName\": ");
  EXPECT_TRUE(test::is_refusal(run("plan lenet --on cut.json"), "is not an object of JSON"));
}

}  // namespace
}  // namespace plumb::app
