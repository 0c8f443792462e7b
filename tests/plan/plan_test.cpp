// Steps of networks, planned by cuDNN for GPUs that are not there.
#include "app/plan_step.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "app/device_description.h"
#include "app/planning_driver.h"
#include "core/described.h"
#include "core/runtime.h"
#include "dispatch/machine.h"
#include "dispatch/policy.h"
#include "measure/command/values.h"
#include "models/network.h"
#include "tests/support/folder.h"
#include "tests/support/json.h"
#include "train/fastest_layout.h"

namespace plumb::app {
namespace {

// For all tests of this program, before cuDNN is opened.
const char* const driver = open_planning_driver();

constexpr const char* kDtypes[] = {"f32", "tf32", "bf16"};

struct Gpu {
  std::string name;
  Device device;
  measure::DeviceRoofs roofs;
};
const std::vector<Gpu>& gpus() {
  static const std::vector<Gpu> all = [] {
    std::vector<Gpu> made;
    for (const std::string& name : described_devices()) {
      const std::string text = device_description(name);
      made.push_back({name, describe_device(text), roofs_of(text)});
    }
    return made;
  }();
  return all;
}

PlannedStep plan(const Gpu& gpu, const std::string& model, const char* dtype, Layout layout,
                 const char* algorithm = "heuristic") {
  return plan_step({.model = model,
                    .precision = named(dtype, training::kPrecisions),
                    .kernels = kernel_choice(algorithm),
                    .batch = 32},
                   layout, gpu.device, gpu.roofs);
}

// What tables are kept for: cuDNN's version, as it names itself.
std::string version_of_cudnn() {
  for (const std::string& v : device_library_versions(gpus()[0].device)) {
    if (v.starts_with("cuDNN ")) return v.substr(6);
  }
  return "";
}

// Every convolution of every network, in every layout, dtype and direction: a line each, sorted.
TEST(PlanTest, EveryConvolutionHasThePlanOfTheTable) {
  std::set<std::string> lines;
  int kernels = 0;
  for (const Gpu& gpu : gpus()) {
    for (const std::string& model : models::network_names()) {
      for (const char* dtype : kDtypes) {
        for (const Layout layout : kPublicLayouts) {
          for (const PlannedKernel& k : plan(gpu, model, dtype, layout).kernels) {
            if (!k.kind.starts_with("conv2d")) continue;
            ++kernels;
            EXPECT_EQ(k.provider, Provider::kCudnn) << gpu.name << " " << dtype << " " << k.kind << " " << k.shapes;
            lines.insert(message("{} {} {} {} {}: {} {}", gpu.name, dtype, layout, k.kind, k.shapes, k.algorithm,
                                 k.workspace_bytes));
          }
        }
      }
    }
  }
  RecordProperty("convolutions", kernels);
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  const std::string file = test::source_folder() + "/tests/plan/cudnn-" + version_of_cudnn() + ".txt";
  if (std::getenv("PLUMB_WRITE_TABLES")) {
    std::ofstream(file) << text;
    return;
  }
  std::ifstream in(file);
  if (!in) GTEST_SKIP() << "there is no table for cuDNN " << version_of_cudnn() << "; PLUMB_WRITE_TABLES=1 writes it";
  std::set<std::string> expected;
  for (std::string line; std::getline(in, line);) expected.insert(line);
  int shown = 0;
  for (const std::string& line : lines) {
    if (!expected.contains(line) && ++shown <= 20) ADD_FAILURE() << "not in the table: " << line;
  }
  EXPECT_EQ(lines.size(), expected.size());
}

TEST(PlanTest, ThereIsADriverToPlanWith) { EXPECT_STRNE(driver, "none"); }

TEST(PlanTest, StrictArithmeticStaysOffTensorCoresAndEveryChoiceHasTheSameBits) {
  for (const Gpu& gpu : gpus()) {
    for (const char* dtype : kDtypes) {
      bool has_tensor_cores = false;
      for (const PlannedKernel& k : plan(gpu, "vgg16", dtype, Layout::kNhwc).kernels) {
        has_tensor_cores |= k.notes.find("tensor_core") != std::string::npos;
        EXPECT_EQ(k.notes.find("nondeterministic"), std::string::npos) << k.kind << " " << k.algorithm;
      }
      EXPECT_EQ(has_tensor_cores, std::string(dtype) != "f32") << gpu.name << " " << dtype;
    }
  }
}

TEST(PlanTest, TellsWhatDeterminismLeavesOut) {
  int left_out = 0;
  for (const PlannedKernel& k : plan(gpus()[1], "vgg16", "f32", Layout::kNchw).kernels) {
    if (k.passed_over.empty()) continue;
    ++left_out;
    EXPECT_TRUE(k.kind.starts_with("conv2d_backward")) << k.kind;
    EXPECT_NE(k.passed_over, k.algorithm);
  }
  EXPECT_GT(left_out, 0);
}

TEST(PlanTest, ProductsTakeTheReluBetweenLinearLayersAlong) {
  std::map<std::string, int> kinds;
  for (const PlannedKernel& k : plan(gpus()[1], "alexnet", "bf16", Layout::kNhwc).kernels) ++kinds[k.kind];
  EXPECT_EQ(kinds["linear_forward_mask"], 2);
  EXPECT_EQ(kinds["linear_forward"], 1);
  EXPECT_EQ(kinds["linear_backward_input_mask"], 2);
  EXPECT_EQ(kinds["linear_backward_input"], 1);
  EXPECT_EQ(kinds["relu_bias_backward"], 5) << "those of the convolutions, with the sums for their biases";
  EXPECT_EQ(kinds["relu_backward"] + kinds["reduce"], 0);
}

TEST(PlanTest, TensorCoresTakeWeightsInKrscWithoutAWorkspace) {
  for (const char* dtype : {"tf32", "bf16"}) {
    std::map<std::string, int> kinds;
    for (const PlannedKernel& k : plan(gpus()[1], "vgg16", dtype, Layout::kNhwc).kernels) {
      ++kinds[k.kind];
      if (k.kind != "conv2d_forward" && k.kind != "conv2d_backward_input") continue;
      EXPECT_TRUE(k.algorithm.ends_with("_krsc")) << k.algorithm;
      EXPECT_LT(k.workspace_bytes, 1u << 20) << k.algorithm << " of " << k.shapes;
    }
    EXPECT_EQ(kinds["repack"], 10) << "one for both uses of a convolution's weights";
  }
}

TEST(PlanTest, OneEngineByItsName) {
  int of_engine_1 = 0;
  for (const PlannedKernel& k : plan(gpus()[1], "vgg16", "f32", Layout::kNchw, "cudnn_e1").kernels)
    of_engine_1 += k.algorithm == "cudnn_e1" || k.algorithm == "cudnn_e1_fallback" ? 1 : 0;
  EXPECT_GT(of_engine_1, 13) << "it has all forward convolutions";
  for (const PlannedKernel& k : plan(gpus()[1], "lenet", "f32", Layout::kNchw, "direct").kernels) {
    EXPECT_NE(k.provider, Provider::kCudnn) << k.kind;
  }
}

TEST(PlanTest, LayoutsBeginWithWhatCudnnReads) {
  const Device gpu = gpus()[1].device;
  EXPECT_EQ(training::usual_layout(gpu, DType::kF32), Layout::kNchw);
  EXPECT_EQ(training::usual_layout(gpu, DType::kBf16), Layout::kNhwc);
  EXPECT_EQ(training::usual_layout({}, DType::kF32), Layout::kNhwc);
  const PolicyScope tf32(policy_of({Search::kHeuristic}, training::Precision::kTf32));
  EXPECT_EQ(training::usual_layout(gpu, DType::kF32), Layout::kNhwc);
}

TEST(PlanTest, FloorsAreThoseOfTheDevice) {
  const measure::DeviceRoofs r = gpus()[1].roofs;  // an H200
  EXPECT_EQ(gpus()[1].name, "h200");
  EXPECT_NEAR(r.f32, 67e12, 1e12);
  EXPECT_EQ(r.bytes, 4.3e12);
  EXPECT_EQ(r.floor(4.3e9, 0, DType::kF32, MathMode::kStrict), 1e-3);
  EXPECT_EQ(r.floor(0, 790e9, DType::kBf16, MathMode::kStrict), 1e-3);
  EXPECT_NEAR(gpus()[0].roofs.bytes, 2.04e12, 1e10) << "an A100 of 80 GB";
  EXPECT_NEAR(gpus()[0].roofs.f32, 19.5e12, 1e11);
  EXPECT_NEAR(gpus()[0].roofs.bf16, 312e12, 1e12);
}

}  // namespace
}  // namespace plumb::app
