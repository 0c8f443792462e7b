#include <cmath>

#include "models/safetensors.h"
#include "models/weights.h"
#include "tests/app/command.h"

namespace plumb::app {
namespace {

class EvalTest : public test::CommandTest {
 protected:
  void save(const std::string& model) const { models::save_weights(*models::make_network(model, 3), path("w")); }
};

TEST_F(EvalTest, PrintsAndWritesTheSame) {
  save("lenet");
  const test::Outcome o = run("eval lenet --weights w --data synthetic --limit 40 --json r.json");

  ASSERT_EQ(o.status, 0) << o;
  const auto report = read_json("r.json");
  EXPECT_EQ(report["model"], "lenet");
  EXPECT_EQ(report["total"], 40);
  EXPECT_GT(report["environment"]["threads"], 0);
  EXPECT_NEAR(report["loss"].get<double>(), std::log(10.), 0.1) << "of weights that know nothing of ten classes";
  char expected[80];
  std::snprintf(expected, sizeof expected, "correct %d of 40\nloss %.6f\n", report["correct"].get<int>(),
                report["loss"].get<double>());
  EXPECT_EQ(o.out, expected);
  EXPECT_EQ(report["kernels"], "all");
}

TEST_F(EvalTest, SaysWhoseKernelsRan) {
  save("lenet");
  const test::Outcome o = run("eval lenet --weights w --data synthetic --limit 40 --kernels vendor --json r.json");

  EXPECT_NE(o.out.find("\nby vendor kernels\n"), std::string::npos) << o;
  EXPECT_EQ(read_json("r.json")["kernels"], "vendor");
}

TEST_F(EvalTest, AgreesWithTheEvaluationInTraining) {
  ASSERT_TRUE(
      works("train lenet --limit 200 --batch 20 --epochs 12 --optimizer adam --layout nchw --algorithm heuristic "
            "--checkpoint c --json t.json"));
  // The network's part of the checkpoint, by the names that weights have.
  const models::TensorFile saved = models::load_safetensors(path("c/checkpoint.safetensors"));
  std::vector<models::NamedTensor> weights;
  for (const auto& t : saved.tensors) {
    if (t.name.starts_with("model.")) weights.push_back({t.name.substr(6), t.tensor});
  }
  models::save_safetensors(path("w"), weights);

  const auto trained = read_json("t.json")["epochs"].back();
  const auto evaluated = report_of("eval lenet --weights w --data synthetic --limit 200 --batch 20 --layout nchw");
  EXPECT_GT(evaluated["correct"], 100) << "five times as good as chance";
  EXPECT_EQ(evaluated["correct"].get<int>(), std::lround(200 * trained["test_accuracy"].get<double>()));
  EXPECT_NEAR(evaluated["loss"].get<double>(), trained["test_loss"].get<double>(), 1e-5);
}

// With the epsilon of batch normalization that it was trained with.
TEST_F(EvalTest, OfACheckpointIsTheEvaluationInTraining) {
  const std::string how = "--limit 20 --batch 10 --layout nchw --algorithm heuristic ";
  for (const std::string convention : {"pytorch", "keras", "tensorflow1"}) {
    ASSERT_TRUE(works("train resnet20 --epochs 1 --lr 0.01 --checkpoint c --json t.json " + how + "--convention " +
                      convention));

    const auto trained = read_json("t.json")["epochs"].back();
    for (const std::string weights : {"c", "c/checkpoint.safetensors"}) {
      const auto evaluated = report_of("eval resnet20 --data synthetic " + how + "--weights " + weights);
      EXPECT_EQ(evaluated["convention"], convention);
      EXPECT_EQ(evaluated["correct"].get<int>(), std::lround(20 * trained["test_accuracy"].get<double>()));
      EXPECT_NEAR(evaluated["loss"].get<double>(), trained["test_loss"].get<double>(), 1e-6) << convention;
    }
    const std::string other = convention == "pytorch" ? "keras" : "pytorch";
    const auto evaluated = report_of("eval resnet20 --data synthetic --weights c " + how + "--convention " + other);
    EXPECT_EQ(evaluated["convention"], other);
    EXPECT_GT(std::abs(evaluated["loss"].get<double>() - trained["test_loss"].get<double>()), 2e-6) << convention;
  }
}

TEST_F(EvalTest, WeightsByThemselvesAreOfPyTorchUnlessSaidOtherwise) {
  save("resnet20");
  const std::string line = "eval resnet20 --weights w --data synthetic --limit 8 --algorithm heuristic ";
  const auto loss = report_of(line)["loss"];
  EXPECT_EQ(report_of(line + "--convention pytorch")["loss"], loss);
  EXPECT_NE(report_of(line + "--convention keras")["loss"], loss);
}

TEST_F(EvalTest, RefusesACheckpointOfAnUnknownConvention) {
  const auto network = models::make_network("lenet");
  models::save_safetensors(path("w"), network->parameters(),
                           {{"format", std::string(models::kCheckpointFormat)}, {"config.convention", "caffe"}});
  EXPECT_TRUE(refuses("eval lenet --weights w --data synthetic --limit 8",
                      "w is not a valid checkpoint: its convention is \"caffe\""));
}

TEST_F(EvalTest, BatchLayoutAndAlgorithmChangeNoAnswer) {
  save("lenet");
  const std::string line = "eval lenet --weights w --data synthetic --limit 33 ";
  const auto expected = report_of(line);
  for (const std::string option : {"--batch 1", "--batch 32", "--batch 1000", "--layout nchw", "--layout chwn",
                                   "--algorithm direct", "--algorithm deterministic", "--threads 1"}) {
    const auto report = report_of(line + option);
    EXPECT_EQ(report["correct"], expected["correct"]) << option;
    EXPECT_NEAR(report["loss"].get<double>(), expected["loss"].get<double>(), 1e-5) << option;
  }
}

TEST_F(EvalTest, ResnetsAreNormalisedAsPublished) {
  save("resnet20");
  const std::string line = "eval resnet20 --weights w --data synthetic --limit 8 --algorithm heuristic ";
  const auto expected = report_of(line);
  EXPECT_EQ(report_of(line + "--mean 0.485,0.456,0.406 --std 0.229,0.224,0.225")["loss"], expected["loss"]);
  EXPECT_NE(report_of(line + "--mean 0,0,0 --std 1,1,1")["loss"], expected["loss"]);
}

TEST_F(EvalTest, RefusesWhatMakesNoSense) {
  save("lenet");
  const struct {
    const char *options, *part;
  } cases[] = {
      {"--mean 0.5", "give both --mean and --std, or neither"},
      {"--std 0.5", "give both --mean and --std, or neither"},
      {"--mean 0.5,0.5 --std 1,1",
       "--mean has 2 values for images of 1 channels; give one for each, with commas between"},
      {"--mean 0.5 --std 0", "--std: 0 is too small; use a number above 0"},
      {"--mean 0.5 --std -1", "--std: -1 is too small"},
      {"--mean nan --std 1", "--mean: \"nan\" is not a finite number"},
      {"--mean grey --std 1", "--mean: \"grey\" is not a number"},
      {"--mean 0.5, --std 1", "--mean: \"\" is not a number"},
      {"--mean 0.5 lenet --std 1", "not expected: lenet"},
      {"--mean 0.5 --mean 0.5 --std 1", "--mean was given twice"},
      {"--mean 0.5 --std 1,1", "--std has 2 values for images of 1 channels"},
      {"--batch 0", "--batch: 0 is too small"},
      {"--layout auto", "--layout: \"auto\" is unknown; use nchw, nhwc or chwn"},
      {"--algorithm fft", "--algorithm: \"fft\" is unknown"},
      {"--convention jax", "--convention: \"jax\" is unknown; use pytorch, keras or tensorflow1"},
      {"--threads -1", "--threads: -1 is too small"},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(refuses(std::string("eval lenet --weights w --data synthetic --limit 8 ") + c.options, c.part));
  }
  EXPECT_TRUE(refuses("eval lenet --weights w --data synthetic --limit -1", "--limit: -1 is too small"));
  EXPECT_TRUE(refuses("eval lenet --weights w --data none", "none is not a folder"));
  EXPECT_TRUE(refuses("eval lenet5 --weights w --data synthetic", "\"lenet5\" is unknown"));
}

}  // namespace
}  // namespace plumb::app
