// plumb plan, and what plumb says where there is no GPU.
#include <gmock/gmock.h>

#include <map>

#include "app/audit_rows.h"
#include "app/device_description.h"
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
    std::map<std::string, int> kinds;
    for (const auto& k : step["kernels"]) ++kinds[k["kernel"].get<std::string>()];
    EXPECT_EQ(kinds["conv2d_forward"], 10);
    EXPECT_EQ(kinds["conv2d_backward_weight"], 10);
    EXPECT_EQ(kinds["conv2d_backward_input"], 9);
    EXPECT_EQ(kinds["relu_bias_backward"], 10);
    EXPECT_GT(step["kernels"].size(), 55u);
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
  EXPECT_TRUE(refuses("plan lenet --on h200 --algorithm cudnn_e999", "there is no such plan for any kernel of lenet"));
  EXPECT_TRUE(refuses("plan vgg16 --on h200 --layout nhwc --algorithm cudnn_e74 --workspace 2",
                      "there is no such plan for any kernel of vgg16 in nhwc within a workspace of 2.0 MB"));
  EXPECT_TRUE(refuses("plan vgg16 --on h200 --workspace 0", "within a workspace of 0 bytes; allow at least "));
  EXPECT_TRUE(refuses("plan vgg16 --on h200 --workspace -1", "--workspace: -1 is too small"));
  EXPECT_TRUE(refuses("plan lenet --on h200 --algorithm cudnn_38", "--algorithm: \"cudnn_38\" is unknown"));
  EXPECT_TRUE(refuses("plan lenet --on h200 --dtype f16", "--dtype: \"f16\" is unknown"));
}

TEST_F(PlanCommandTest, AuditHoldsPoliciesAndProcessesAgainstEachOther) {
  const std::string audit = "audit plans vgg16 --on h200 --layout nchw --batch 32 --processes ";
  const auto j = report_of(audit + "2");
  ASSERT_EQ(j["layouts"].size(), 1u);
  const auto& kernels = j["layouts"][0]["kernels"];
  const auto algorithm_of = [](const auto& kernel, const char* policy) {
    return kernel[policy]["algorithm"].template get<std::string>();
  };
  int other_engines = 0;
  for (const auto& k : kernels) {
    EXPECT_EQ(k["processes_alike"], 2) << k;
    EXPECT_EQ(k["deterministic"]["notes"].get<std::string>().find("nondeterministic"), std::string::npos) << k;
    for (const char* policy : {"heuristic", "heuristic_b", "fallback"}) EXPECT_NE(k[policy]["algorithm"], "") << k;
    if (k["kernel"].get<std::string>().starts_with("conv2d_forward")) {
      EXPECT_NE(k["fallback"]["algorithm"].get<std::string>().find("_fallback"), std::string::npos) << k;
    }
    other_engines += engine_of(algorithm_of(k, "fallback")) != engine_of(algorithm_of(k, "heuristic"));
  }
  EXPECT_GT(kernels.size(), 20u);
  const auto says = [&](const char* policy, int engines) {
    return testing::ContainsRegex(std::string(policy) + " +largest workspace +[0-9.]+ MB; " + std::to_string(engines) +
                                  " of " + std::to_string(kernels.size()) + " kernels by another engine");
  };
  const std::string text = run(audit + "0").out;
  EXPECT_THAT(text, says("heuristic", 0));
  EXPECT_THAT(text, says("fallback", other_engines));
  const test::Outcome o = run("audit plans lenet --on a100 --batch 8 --processes 0");
  EXPECT_EQ(o.status, 0) << o;
  EXPECT_THAT(o.out, testing::HasSubstr("fallback       largest workspace"));
  EXPECT_TRUE(refuses("audit plan lenet --on h200", "audit: \"plan\" is unknown; use plans"));
  EXPECT_TRUE(refuses("audit plans lenet --on h100", "\"h100\" is unknown; use a100 or h200"));
  EXPECT_TRUE(refuses("audit plans lenet", "--on"));
}

// From the same gradients and filters, those of stride 1 and of stride 2 make gradients of images of different sizes.
TEST_F(PlanCommandTest, AuditTellsConvolutionsOfOtherStridesApart) {
  const auto j = report_of("audit plans resnet50 --on h200 --layout nhwc --batch 2 --processes 1");
  std::map<std::string, std::set<std::string>> outputs;
  for (const auto& k : j["layouts"][0]["kernels"]) {
    EXPECT_EQ(k["processes_alike"], 1) << k;
    if (k["kernel"] == "conv2d_backward_input") outputs[k["shapes"]].insert(k["output"].get<std::string>());
  }
  EXPECT_EQ(outputs.at("2x128x28x28 128x128x3x3"), (std::set<std::string>{"2x128x28x28", "2x128x56x56"}));
}

TEST_F(PlanCommandTest, SaysWhatDeterminismCostsOnlyWhereItCosts) {
  const std::string line = "plan vgg16 --on h200 --layout nhwc --batch 32 ";
  const auto left_out = [&](const std::string& options) {
    std::vector<std::pair<std::string, int64_t>> all;
    const auto j = report_of(line + options);
    for (const auto& k : j["steps"][0]["kernels"]) {
      if (!k.contains("nondeterministic_first_choice")) continue;
      const auto& first = k["nondeterministic_first_choice"];
      all.emplace_back(first["algorithm"].get<std::string>(), first["workspace_bytes"].get<int64_t>());
    }
    return all;
  };
  EXPECT_FALSE(left_out("").empty());
  EXPECT_TRUE(left_out("--algorithm direct").empty());
  for (const auto& [algorithm, bytes] : left_out("--workspace 3")) EXPECT_LE(bytes, 3000000) << algorithm;
}

TEST_F(PlanCommandTest, SaysWhatHasNoPlan) {
  EXPECT_THAT(
      run("plan lenet --on h200 --layout nchw --batch 8").out,
      testing::HasSubstr("no plan of cuDNN: max_pool2d_forward, 2 kernels (as 8x6x28x28); plumbline pieces takes"));
  EXPECT_THAT(run("plan lenet --on h200 --layout nchw --batch 8 --algorithm direct").out,
              testing::Not(testing::HasSubstr("no plan of cuDNN: conv2d")));
}

TEST_F(PlanCommandTest, RefusesADescriptionThatCudnnDoesNotTake) {
  write("small.json",
        R"({"deviceName": "x", "deviceVer": 900, "multiProcessorCount": 9, "totalGlobalMem": 9999999999,
            "smClockRateKHz": 1, "memClockRateKHz": 1, "memoryBusWidth": 1})");
  EXPECT_TRUE(test::is_refusal(run("plan lenet --on small.json"), "refuses the description of the device"));
  const std::string h200 = app::device_description("h200");
  const auto refuses_with = [&](const std::string& key, const std::string& value, const std::string& part) {
    std::string text = h200;
    const size_t at = text.find("\"" + key + "\""), colon = text.find(':', at);
    text.replace(colon + 1, text.find_first_of(",}", colon) - colon - 1, value);
    write("wrong.json", text);
    return test::is_refusal(run("plan lenet --on wrong.json"), part);
  };
  EXPECT_TRUE(refuses_with("deviceVer", "700", "\"deviceVer\": 700; the kernels need 800 or more"));
  EXPECT_TRUE(refuses_with("smClockRateKHz", "-5", "has no \"smClockRateKHz\" from 1 to"));
  EXPECT_TRUE(refuses_with("memoryBusWidth", "0", "has no \"memoryBusWidth\" from 1 to"));
  EXPECT_TRUE(refuses_with("memoryBusWidth", "1e300", "has no \"memoryBusWidth\" from 1 to"));
  EXPECT_TRUE(refuses_with("deviceName", "\"a\\nb\"", "\"deviceName\" that is none"));
  EXPECT_TRUE(refuses_with("deviceName", "\"" + std::string(300, 'x') + "\"", "\"deviceName\" that is none"));
  write("cut.json", "{\"deviceName\": ");
  EXPECT_TRUE(test::is_refusal(run("plan lenet --on cut.json"), "is not an object of JSON"));
}

}  // namespace
}  // namespace plumb::app
