// What plumb train prints and writes, with every choice that it offers.
#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "models/weights.h"
#include "tests/app/command.h"

namespace plumb::app {
namespace {

using test::Json;
using test::kShortRun;

class TrainTest : public test::CommandTest {
 protected:
  // The losses of all epochs, in training and on the test split.
  std::vector<double> losses(const std::string& line) const {
    std::vector<double> all;
    const Json report = report_of(line);
    for (const Json& epoch : report["epochs"]) {
      all.push_back(epoch["loss"].get<double>());
      all.push_back(epoch["test_loss"].get<double>());
    }
    EXPECT_FALSE(all.empty());
    return all;
  }
  testing::AssertionResult near(const std::string& line, const std::vector<double>& expected, double bound) const {
    const std::vector<double> got = losses(line);
    if (got.size() != expected.size()) return testing::AssertionFailure() << got.size() << " losses of " << line;
    for (size_t i = 0; i < got.size(); ++i) {
      if (!(std::abs(got[i] - expected[i]) <= bound)) {
        return testing::AssertionFailure() << line << ": loss " << i << " is " << got[i] << ", not " << expected[i];
      }
    }
    return testing::AssertionSuccess();
  }
};

TEST_F(TrainTest, SyntheticImagesAreOfTheNetworksSize) {
  const test::Outcome o =
      run("train resnet50 --limit 2 --batch 2 --epochs 1 --layout nhwc --algorithm heuristic --json r.json");

  EXPECT_EQ(o.status, 0) << o;
  EXPECT_NE(o.out.find("resnet50 (25557032 parameters) on synthetic-imagenet, 2 + 2 images"), o.out.npos) << o;
  EXPECT_NEAR(read_json("r.json")["epochs"][0]["loss"].get<double>(), std::log(1000.), 1);
}

TEST_F(TrainTest, TheReportHasEveryStepAndEpoch) {
  const Json report =
      report_of("train lenet --limit 20 --batch 8 --epochs 2 --layout nhwc --algorithm heuristic --threads 1");

  EXPECT_EQ(report["steps_ms"].size(), 2u * 3) << "with the short last batch";
  double steps_ms = 0, seconds = 0;
  for (const auto& ms : report["steps_ms"]) {
    EXPECT_GT(ms, 0);
    steps_ms += ms.get<double>();
  }
  ASSERT_EQ(report["epochs"].size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const Json& epoch = report["epochs"][i];
    EXPECT_EQ(epoch["epoch"], i + 1);
    seconds += epoch["seconds"].get<double>();
    for (const char* loss : {"loss", "test_loss"}) EXPECT_NEAR(epoch[loss].get<double>(), std::log(10.), 0.2);
    for (const char* accuracy : {"train_accuracy", "test_accuracy"}) {
      const double correct = 20 * epoch[accuracy].get<double>();
      EXPECT_NEAR(correct, std::round(correct), 1e-9) << "of 20 images";
      EXPECT_TRUE(correct >= 0 && correct <= 20);
    }
  }
  EXPECT_LE(steps_ms, 1e3 * seconds + 1e-6);
  const double second = report["epochs"][1]["seconds"].get<double>();  // the first is apart: kernels are chosen in it
  EXPECT_NEAR(report["mean_epoch_seconds"].get<double>(), second, 1e-9);
  EXPECT_NEAR(report["images_per_second"].get<double>(), 20 / second, 1e-6 * 20 / second);
  EXPECT_EQ(report["config"]["threads"], "1");
  EXPECT_EQ(report["environment"]["threads"], 1);
  for (const char* what : {"processor", "isa", "libraries", "compiler"}) {
    EXPECT_FALSE(report["environment"][what].empty()) << what;
  }
}

TEST_F(TrainTest, TheReportHasMemoryByClass) {
  const Json memory = report_of(kShortRun + "--optimizer adam")["memory_bytes"];

  constexpr int64_t kParameters = 61706 * 4;
  int64_t sum = 0;
  for (const char* c : {"parameter", "gradient", "activation", "state", "workspace", "pack", "input"}) {
    ASSERT_TRUE(memory.contains(c)) << c;
    sum += memory[c].get<int64_t>();
  }
  EXPECT_EQ(memory["total"], sum);
  EXPECT_GE(memory["reserved"], kParameters);
  EXPECT_GE(memory["parameter"], kParameters);
  EXPECT_GE(memory["state"], 2 * kParameters) << "of Adam's mean and mean square";
  EXPECT_LT(memory["state"], 3 * kParameters);
  EXPECT_GT(memory["activation"], 0);
}

TEST_F(TrainTest, TheCsvSaysTheSameAsTheJson) {
  const Json report = report_of(kShortRun + "--csv report.csv");

  const Json& e = report["epochs"][0];
  std::istringstream lines(read("report.csv"));
  std::string header, row, rest;
  std::getline(lines, header);
  std::getline(lines, row);
  EXPECT_EQ(header, "epoch,seconds,loss,train_accuracy,test_loss,test_accuracy");
  const Json values = test::parse_json("[" + row + "]");
  EXPECT_EQ(values, Json({1, e["seconds"], e["loss"], e["train_accuracy"], e["test_loss"], e["test_accuracy"]}));
  EXPECT_FALSE(std::getline(lines, rest)) << "one line an epoch";
}

TEST_F(TrainTest, TheProfileIsATraceOfEveryKernel) {
  ASSERT_TRUE(works(kShortRun + "--profile trace.json"));

  std::map<std::string, std::set<std::string>> kernels;  // by the part of the step
  std::vector<std::pair<double, double>> steps;          // when each began and ended
  const Json trace = read_json("trace.json");
  for (const Json& e : trace["traceEvents"]) {
    if (e["ph"] == "M") continue;
    ASSERT_EQ(e["ph"], "X") << e;
    ASSERT_TRUE(e["ts"] >= 0 && e["dur"] >= 0 && e["pid"] == 1 && e["tid"].is_number_integer()) << e;
    kernels[e["cat"]].insert(e["name"]);
    const double begin = e["ts"], end = begin + e["dur"].get<double>();
    if (e["cat"] == "step") {
      steps.emplace_back(begin, end);
    } else {
      EXPECT_NE(e["args"]["implementation"], "") << e;
    }
    const bool inside = std::ranges::any_of(steps, [&](auto s) { return s.first <= begin && end <= s.second; });
    EXPECT_TRUE(inside || e["cat"] == "forward") << "only the evaluation is outside of the steps: " << e;
  }
  EXPECT_EQ(kernels["step"], (std::set<std::string>{"step 0", "step 1"}));
  EXPECT_TRUE(kernels["forward"].contains("conv2d_forward"));
  EXPECT_TRUE(kernels["backward"].contains("conv2d_backward_weight"));
  EXPECT_TRUE(kernels["backward"].contains("linear_backward_input"));
  EXPECT_EQ(kernels["update"].size(), 1u) << "one fused update";
}

TEST_F(TrainTest, TheProfileOfACapturedStepHasTheSameKernels) {
  std::map<std::string, std::map<std::string, int>> counts;
  for (const std::string mode : {"eager", "captured"}) {
    ASSERT_TRUE(works(kShortRun + "--profile trace.json --mode " + mode));
    const Json trace = read_json("trace.json");
    for (const Json& e : trace["traceEvents"]) {
      const std::string name = e["name"];
      if (!name.starts_with("conv2d_") && !name.starts_with("linear_") && !name.starts_with("sgd")) continue;
      ++counts[mode][e["cat"].get<std::string>() + " " + name];
    }
  }
  EXPECT_EQ(counts["captured"], counts["eager"]);
  EXPECT_EQ(counts["eager"]["backward conv2d_backward_weight"], 4) << "two layers, two steps";
  EXPECT_EQ(counts["eager"]["update sgd"], 2);
}

TEST_F(TrainTest, AutoPrintsTheLayoutItChose) {
  const test::Outcome o = run("train lenet --limit 8 --batch 8 --epochs 1 --algorithm heuristic --json report.json");

  ASSERT_EQ(o.status, 0) << o;
  const std::string layout = read_json("report.json")["config"]["layout"];
  EXPECT_TRUE(std::set<std::string>({"nchw", "nhwc", "chwn"}).contains(layout)) << layout;
  EXPECT_NE(o.out.find("layout " + layout + " (fastest measured)"), o.out.npos) << o;
  EXPECT_EQ(run(kShortRun).out.find("fastest measured"), std::string::npos);
}

TEST_F(TrainTest, WhatIsDeterministicLeavesNoLayoutToTheClock) {
  const test::Outcome o = run("train lenet --limit 8 --batch 8 --epochs 1 --algorithm deterministic");

  EXPECT_EQ(o.status, 0) << o;
  EXPECT_NE(o.out.find("layout nhwc, "), o.out.npos) << o;
}

TEST_F(TrainTest, MeasuresTheLayoutWithNoMoreImagesThanThereAre) {
  EXPECT_TRUE(works("train lenet --limit 8 --batch 2000000000 --epochs 1 --algorithm heuristic"));
}

TEST_F(TrainTest, ReadingLossesSeldomChangesNoResult) {
  const std::string line = "train lenet --limit 28 --batch 8 --epochs 2 --layout nchw --algorithm heuristic ";
  const auto expected = losses(line);
  for (const std::string mode : {"eager", "captured"}) {
    EXPECT_EQ(losses(line + "--log-every 3 --mode " + mode), expected);
    EXPECT_EQ(report_of(line + "--log-every 3 --mode " + mode)["steps_ms"].size(), 2u * 4);
  }
  EXPECT_TRUE(refuses(line + "--log-every 0", "--log-every: 0 is too small; use at least 1"));
  EXPECT_TRUE(test::is_refusal(run(line + "--log-every 3 --lr 1e30 --check-nan"), "holds a NaN"));
}

TEST_F(TrainTest, EveryLayoutModeAndAlgorithmTrainsAlike) {
  const std::string line = "train lenet --limit 16 --batch 8 --epochs 2 --lr 0.1 ";
  const auto expected = losses(line + "--layout nchw --algorithm heuristic");
  for (const std::string layout : {"nchw", "nhwc", "chwn"}) {
    for (const std::string mode : {"eager", "captured"}) {
      EXPECT_TRUE(near(line + "--algorithm heuristic --layout " + layout + " --mode " + mode, expected, 1e-4));
    }
  }
  for (const std::string algorithm : {"measured", "direct", "deterministic"}) {
    EXPECT_TRUE(near(line + "--layout nhwc --algorithm " + algorithm, expected, 1e-4));
  }
  EXPECT_TRUE(test::is_refusal(run(line + "--layout nhwc --algorithm winograd"),
                               "--algorithm winograd: no kernel of lenet has such an algorithm"));
}

TEST_F(TrainTest, AnAlgorithmByNameIsWhatRuns) {
  const auto families = [&](const std::string& algorithm) {
    EXPECT_TRUE(works("train resnet20 --limit 2 --batch 2 --epochs 1 --layout nhwc --profile trace.json --algorithm " +
                      algorithm));
    std::set<std::string> all;
    const Json trace = read_json("trace.json");
    for (const Json& e : trace["traceEvents"]) {
      if (e["name"] != "conv2d_forward") continue;
      const std::string ran = e["args"]["algorithm"];
      all.insert(ran.substr(0, ran.find('_')));  // winograd_f4x4 is one of the family
    }
    return all;
  };
  EXPECT_TRUE(families("winograd").contains("winograd"));
  EXPECT_EQ(families("direct"), std::set<std::string>{"direct"});
}

TEST_F(TrainTest, TheVendorsKernelsRunAloneWhereItHasThem) {
  const auto providers = [&](const std::string& options) {
    EXPECT_TRUE(
        works("train alexnet --limit 2 --batch 2 --epochs 1 --layout nhwc --algorithm heuristic --profile "
              "trace.json " +
              options));
    std::map<std::string, std::set<std::string>> all;  // of each kind of kernel
    const Json trace = read_json("trace.json");
    for (const Json& e : trace["traceEvents"]) {
      if (e.contains("args") && e["args"].contains("provider")) all[e["name"]].insert(e["args"]["provider"]);
    }
    return all;
  };
  const std::set<std::string> onednn{"onednn"}, plumbline{"plumbline"};
  auto vendor = providers("--kernels vendor");
  for (const char* kind : {"conv2d_forward", "conv2d_backward_input", "conv2d_backward_weight", "linear_forward",
                           "linear_backward_input", "linear_backward_weight"}) {
    EXPECT_EQ(vendor[kind], onednn) << kind;
  }
  EXPECT_EQ(vendor["sgd"], plumbline) << "which no vendor has";
  EXPECT_TRUE(providers("--kernels all")["conv2d_forward"].contains("plumbline"));
  EXPECT_TRUE(refuses("train alexnet --kernels intel", "--kernels: \"intel\" is unknown; use all or vendor"));
}

TEST_F(TrainTest, CapturedIsEagerBitForBit) {
  for (const std::string options : {"", "--optimizer adam", "--dtype bf16", "--augment --momentum 0.9"}) {
    const std::string line =
        "train lenet --limit 20 --batch 8 --epochs 3 --layout nhwc --algorithm heuristic " + options;
    EXPECT_EQ(losses(line + " --mode captured"), losses(line + " --mode eager")) << options;
  }
}

// What a step makes lies in one block, at places that are shared by what is never alive together. Side by side it would
// be 1.7 times what the eager step has at once; the evaluation, which is eager, takes some memory beside the block.
TEST_F(TrainTest, CapturedPlansItsMemory) {
  const Json eager = report_of(kShortRun + "--mode eager")["memory_bytes"],
             captured = report_of(kShortRun + "--mode captured")["memory_bytes"];
  double made = 0;
  for (const char* c : {"activation", "gradient", "pack"}) made += eager[c].get<double>();
  EXPECT_GT(eager["gradient"], 0);
  EXPECT_EQ(captured["gradient"], 0);
  EXPECT_LT(captured["activation"], 1.5 * made);
}

TEST_F(TrainTest, Bf16StaysNearF32) {
  const auto f32 = losses(kShortRun);
  for (const std::string mode : {"eager", "captured"}) {
    const std::string line = kShortRun + "--dtype bf16 --mode " + mode;
    EXPECT_TRUE(near(line, f32, 0.02));
    EXPECT_NE(losses(line), f32);
  }
}

TEST_F(TrainTest, EveryOptimizerAndConventionTrains) {
  std::set<std::vector<double>> different;
  for (const std::string optimizer : {"sgd", "adam", "adamw", "rmsprop"}) {
    for (const std::string convention : {"pytorch", "keras", "tensorflow1"}) {
      if (optimizer == "adamw" && convention == "tensorflow1") continue;
      different.insert(losses(kShortRun + "--lr 0.01 --optimizer " + optimizer + " --convention " + convention));
    }
  }
  EXPECT_EQ(different.size(), 10u) << "plain SGD is the same in Keras and TensorFlow 1, all others differ";
}

TEST_F(TrainTest, TheSeedDecidesWeightsOrderDropoutAndAugmentation) {
  EXPECT_EQ(losses(kShortRun + "--augment --seed 3"), losses(kShortRun + "--augment --seed 3"));
  models::save_weights(*models::make_network("lenet"), path("lenet"));
  models::save_weights(*models::make_network("resnet20"), path("resnet20"));
  const std::string lenet = "train lenet --limit 1 --epochs 1 --layout nchw --algorithm heuristic ",
                    resnet = "train resnet20 --limit 4 --epochs 1 --layout nchw --algorithm heuristic --init resnet20 ";
  const std::pair<const char*, std::string> cases[] = {
      {"weights", lenet + "--lr 0"},
      {"dropout", lenet + "--lr 0 --init lenet"},
      {"order", resnet + "--lr 0.1 --batch 2"},
      {"augmentation", resnet + "--lr 0 --augment"},
  };
  for (const auto& [what, line] : cases) {
    const double difference = losses(line + " --seed 3")[0] - losses(line + " --seed 4")[0];
    EXPECT_GT(std::abs(difference), 1e-5) << what << ": more than rounding";
  }
}

}  // namespace
}  // namespace plumb::app
