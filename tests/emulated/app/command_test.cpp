// The command on the emulated device.
#include <gmock/gmock.h>

#include "tests/app/command.h"

namespace plumb::app {
namespace {

class EmulatedCommandTest : public test::CommandTest {
 protected:
  const std::string lenet_ = "train lenet --limit 24 --batch 8 --layout nchw --algorithm heuristic ";
};

TEST_F(EmulatedCommandTest, TrainsAsOnTheHostAndSaysWhatItMoved) {
  const auto on_host = report_of(lenet_ + "--epochs 2");
  const auto eager = report_of(lenet_ + "--epochs 2 --device cuda");
  const auto captured = report_of(lenet_ + "--epochs 2 --device cuda:0 --mode captured");

  EXPECT_EQ(eager["config"]["device"], "cuda:0");
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(eager["epochs"][i]["loss"], captured["epochs"][i]["loss"]);
    EXPECT_NEAR(eager["epochs"][i]["loss"].get<double>(), on_host["epochs"][i]["loss"].get<double>(), 1e-5);
    EXPECT_EQ(eager["epochs"][i]["test_accuracy"], on_host["epochs"][i]["test_accuracy"]);
  }
  const auto& moved = eager["transfers"];
  EXPECT_EQ(moved["steps"], 4) << "without the first two, which prepare";
  // A batch each; that of the first of them may have gone beside a step that prepares.
  const auto batches = moved["to_device"]["count"].get<int64_t>();
  EXPECT_TRUE(batches == 3 || batches == 4) << batches;
  EXPECT_GE(moved["to_device"]["bytes"], batches * 8 * (28 * 28 + 8));
  EXPECT_LE(moved["to_device"]["bytes"], batches * (8 * (28 * 28 + 8 + 12) + 512))
      << "bytes of pixels, and where parts begin";
  EXPECT_EQ(moved["to_host"]["count"], 3 * 4) << "loss, logits and labels";
  EXPECT_GE(moved["waits"], 4) << "for the loss";
  EXPECT_GT(moved["launches"], 4 * 30);
  EXPECT_EQ(captured["transfers"]["graph_replays"], 4);
  EXPECT_EQ(captured["transfers"]["launches"], 4) << "augmentation";
  EXPECT_FALSE(on_host.contains("transfers"));
}

TEST_F(EmulatedCommandTest, ReadsResultsAsSeldomAsItIsTold) {
  const std::string line = lenet_ + "--epochs 2 --device cuda ";
  const auto results = [](const test::Json& report) {
    std::vector<test::Json> all;
    for (const auto& e : report["epochs"]) all.insert(all.end(), {e["loss"], e["train_accuracy"], e["test_loss"]});
    return all;
  };
  const auto expected = results(report_of(line));
  for (const std::string mode : {"eager", "captured"}) {
    const auto report = report_of(line + "--log-every 3 --mode " + mode);
    EXPECT_EQ(results(report), expected) << "to the bit";
    EXPECT_EQ(report["config"]["log_every"], 3);
    EXPECT_EQ(report["steps_ms"].size(), 6u);
    EXPECT_EQ(report["transfers"]["to_host"]["count"], 3 * 2) << "losses, answers and labels of three steps together";
    EXPECT_EQ(report["transfers"]["steps"], 4);
  }
  EXPECT_TRUE(test::is_refusal(run(line + "--log-every 2 --check-nan --lr 1e30"), "holds a NaN"));
}

TEST_F(EmulatedCommandTest, ResumesEvaluatesAndChecks) {
  ASSERT_TRUE(works(lenet_ + "--epochs 2 --optimizer adam --device cuda --checkpoint whole --json whole.json"));
  ASSERT_TRUE(works(lenet_ + "--epochs 1 --optimizer adam --device cuda --checkpoint c --check-nan --profile p.json"));
  ASSERT_TRUE(works(lenet_ + "--epochs 2 --optimizer adam --device cuda --checkpoint c --resume"));
  EXPECT_EQ(read("c/checkpoint.safetensors"), read("whole/checkpoint.safetensors"));
  EXPECT_TRUE(refuses(lenet_ + "--epochs 3 --optimizer adam --checkpoint c --resume",
                      "made with --device cuda:0, not --device cpu; give --device cuda:0"));

  const auto events = read_json("p.json")["traceEvents"];
  size_t kernels = 0;
  for (const auto& e : events) kernels += e.contains("args") && e["args"].contains("implementation");
  EXPECT_GT(kernels, 60u);

  const std::string eval = "eval lenet --weights c --data synthetic --limit 24 --layout nchw --algorithm heuristic ";
  const auto there = report_of(eval + "--device cuda"), here = report_of(eval);
  EXPECT_EQ(there["correct"], here["correct"]);
  EXPECT_NEAR(there["loss"].get<double>(), here["loss"].get<double>(), 1e-5);
}

TEST_F(EmulatedCommandTest, ShowsTheDeviceAndItsLayers) {
  const auto device = report_of("info --device cuda");
  EXPECT_EQ(device["device"], "cuda:0");
  EXPECT_EQ(device["device_name"], "emulated");
  for (const char* roof : {"f32_gflops", "bf16_gflops", "copy_gbytes_per_second"})
    EXPECT_GT(device["roofs"][roof].get<double>(), 0) << roof;
  const auto layers = report_of("layout lenet --batch 2 --device cuda --algorithm heuristic");
  EXPECT_GT(layers["rows"].size(), 30u);
  for (const auto& row : layers["rows"])
    EXPECT_TRUE(row["implementation"].get<std::string>().starts_with("plumb:")) << row;
}

TEST_F(EmulatedCommandTest, SaysWhereEveryResultComesFrom) {
  ASSERT_TRUE(works(lenet_ + "--epochs 1 --checkpoint c"));
  for (const std::string& line :
       {lenet_ + "--epochs 1", std::string("eval lenet --weights c --data synthetic --limit 8"),
        std::string("layout lenet --batch 1 --algorithm heuristic")}) {
    EXPECT_THAT(run(line + " --device cuda --json r.json").out, testing::HasSubstr("cuda:0 (emulated)")) << line;
    const auto environment = read_json("r.json")["environment"];
    EXPECT_EQ(environment["device"], "cuda:0") << line;
    EXPECT_EQ(environment["device_name"], "emulated") << line;
  }
  const auto total = read_json("r.json")["totals"]["nchw"];
  EXPECT_GT(total["ms"], 0);
  EXPECT_FALSE(total.contains("onednn_best_ms")) << "there is no oneDNN there";
}

TEST_F(EmulatedCommandTest, RefusesDevicesThatAreNotThere) {
  EXPECT_TRUE(refuses(lenet_ + "--device cuda:1", "\"cuda:1\": this process has 1 such device; use cuda:0"));
  EXPECT_TRUE(refuses(lenet_ + "--device gpu", "\"gpu\" is unknown; use cpu, cuda or cuda:N"));
}

TEST_F(EmulatedCommandTest, RefusesKernelsOfAGpu) {
  for (const char* line : {"train lenet ", "layout lenet "}) {
    for (const char* algorithm : {"cudnn", "cudnn_e38", "cublaslt"}) {
      EXPECT_TRUE(refuses(line + std::string("--device cuda --algorithm ") + algorithm,
                          std::string("--algorithm ") + algorithm + ": cuda:0 has no such kernels; they are a GPU's"));
    }
  }
}

TEST_F(EmulatedCommandTest, RefusesWorkspacesThatNothingFitsInto) {
  EXPECT_TRUE(works(lenet_ + "--epochs 1 --device cuda --workspace 100"));
  EXPECT_TRUE(
      refuses("layout alexnet --batch 1 --algorithm heuristic --device cuda --workspace 0",
              "linear_forward: no kernel on cuda:0 takes f32 (1, 8192) nchw, f32 (10, 8192) nchw, f32 (10) nchw "
              "within a workspace of 0 bytes; allow at least 160"));
}

TEST_F(EmulatedCommandTest, PlansNothing) {
  EXPECT_TRUE(refuses("plan lenet --on h200", "plan: this program was built without cuDNN; build preset cuda"));
}

}  // namespace
}  // namespace plumb::app
