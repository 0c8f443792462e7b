// Checkpoints of the command: a run that goes on from one is the run that was never interrupted.
#include <limits>
#include <set>

#include "models/safetensors.h"
#include "tests/app/command.h"

namespace plumb::app {
namespace {

namespace fs = std::filesystem;
using test::Json;

constexpr const char* kFile = "/checkpoint.safetensors";

class ResumeTest : public test::CommandTest {
 protected:
  // What of a report must be the same, whenever the run was interrupted: all but times.
  static Json results(const Json& report) {
    Json all = Json::array();
    EXPECT_FALSE(report["epochs"].empty());
    for (Json epoch : report["epochs"]) {
      epoch.erase("seconds");
      all.push_back(epoch);
    }
    return all;
  }
  // Four epochs in one go, and two and two: the same reports, and the same bytes in the last checkpoint.
  void expect_bit_for_bit(const std::string& line) const {
    const Json whole = results(report_of(line + " --epochs 4 --checkpoint whole"));
    Json halves = results(report_of(line + " --epochs 2 --checkpoint halves"));
    const Json second = results(report_of(line + " --epochs 4 --checkpoint halves --resume"));
    halves.insert(halves.end(), second.begin(), second.end());
    EXPECT_EQ(halves, whole) << line;
    EXPECT_TRUE(read(std::string("halves") + kFile) == read(std::string("whole") + kFile)) << line;
  }
  // A checkpoint after one epoch in the folder "c".
  void train_one_epoch() const { ASSERT_TRUE(works(kRun + "--epochs 1")); }

  const std::string kRun = "train lenet --limit 20 --batch 8 --layout nchw --algorithm heuristic --checkpoint c ";
};

using How = std::tuple<const char*, const char*>;  // optimizer and mode
class ResumeBitForBitTest : public ResumeTest, public ::testing::WithParamInterface<How> {};

TEST_P(ResumeBitForBitTest, WithAugmentationDropoutAndAShortLastBatch) {
  const auto& [optimizer, mode] = GetParam();
  expect_bit_for_bit(std::string("train lenet --limit 20 --batch 8 --layout nhwc --algorithm heuristic --augment ") +
                     "--optimizer " + optimizer + " --mode " + mode);
}

INSTANTIATE_TEST_SUITE_P(, ResumeBitForBitTest,
                         ::testing::Combine(::testing::Values("sgd --momentum 0.9 --weight-decay 0.01", "adam"),
                                            ::testing::Values("eager", "captured")),
                         [](const auto& p) {
                           const std::string optimizer = std::get<0>(p.param);
                           return optimizer.substr(0, optimizer.find(' ')) + "_" + std::get<1>(p.param);
                         });

TEST_F(ResumeTest, RunningStatisticsGoOn) {
  expect_bit_for_bit("train resnet20 --limit 4 --batch 2 --layout nhwc --algorithm heuristic --optimizer rmsprop");
}

TEST_F(ResumeTest, MeasuredKernelsAndLayoutAreThoseOfTheCheckpoint) {
  const std::string line = "train lenet --limit 20 --batch 8 ";
  ASSERT_TRUE(works(line + "--epochs 1 --checkpoint first"));
  for (const char* copy : {"a", "b"}) fs::copy(path("first"), path(copy));

  const Json whole = report_of(line + "--epochs 3 --checkpoint a --resume");
  ASSERT_TRUE(works(line + "--epochs 2 --checkpoint b --resume"));
  const Json last = report_of(line + "--epochs 3 --checkpoint b --resume --mode captured");

  EXPECT_EQ(results(last)[0], results(whole)[1]);
  EXPECT_EQ(last["config"]["layout"], whole["config"]["layout"]);
  EXPECT_TRUE(read(std::string("a") + kFile) == read(std::string("b") + kFile));
}

TEST_F(ResumeTest, SaysWhoseLayoutItIs) {
  train_one_epoch();
  const std::string line = "train lenet --limit 20 --batch 8 --algorithm heuristic --checkpoint c --resume ";
  const test::Outcome by_itself = run(line + "--epochs 2"), asked = run(line + "--epochs 3 --layout nchw");

  EXPECT_NE(by_itself.out.find("layout nchw (the checkpoint's), "), by_itself.out.npos) << by_itself;
  EXPECT_NE(asked.out.find("layout nchw, "), asked.out.npos) << asked;
}

// Whatever was fastest here, now or then: the table of the checkpoint decides.
TEST_F(ResumeTest, KernelsAreThoseThatTheCheckpointNames) {
  const std::string line = "train lenet --limit 20 --batch 8 --layout nhwc --checkpoint c ";
  ASSERT_TRUE(works(line + "--epochs 1"));
  const fs::path file = path(std::string("c") + kFile);
  const models::TensorFile saved = models::load_safetensors(file);
  for (const std::string algorithm : {"gemm", "matmul"}) {
    Json choices = test::parse_json(saved.metadata.at("choices"));
    int changed = 0;
    for (auto& [work, chosen] : choices.items()) {
      if (!work.starts_with("linear_backward_weight ")) continue;
      chosen = algorithm;
      ++changed;
    }
    ASSERT_EQ(changed, 3 * 2) << "three layers, and a short last batch";
    auto metadata = saved.metadata;
    metadata["choices"] = choices.dump();
    models::save_safetensors(file, saved.tensors, metadata);

    ASSERT_TRUE(works(line + "--epochs 2 --resume --profile trace.json"));

    std::set<std::string> ran;
    const Json trace = read_json("trace.json");
    for (const Json& e : trace["traceEvents"]) {
      if (e["name"] == "linear_backward_weight") ran.insert(e["args"]["algorithm"]);
    }
    EXPECT_EQ(ran, std::set{algorithm});
  }
}

TEST_F(ResumeTest, RefusesTheCheckpointOfAnotherRun) {
  train_one_epoch();
  const std::string rest = " --limit 20 --algorithm heuristic --checkpoint c --epochs 2 --resume";
  const struct {
    const char *run, *part;
  } cases[] = {
      {"lenet --batch 8 --optimizer adam", "made with --optimizer sgd, not --optimizer adam; give --optimizer sgd"},
      {"lenet --batch 9", "made with --batch 8, not --batch 9"},
      {"resnet20 --batch 8", "made with the model lenet, not the model resnet20; train lenet"},
      {"lenet --batch 8 --lr 0.5", "made with no --lr, not --lr 0.5; leave --lr out"},
      {"lenet --batch 8 --seed 1", "made with --seed 0, not --seed 1; give --seed 0, or start anew without --resume"},
      {"lenet --batch 8 --augment", "made with no --augment, not --augment; leave --augment out"},
      {"lenet --batch 8 --dtype bf16", "made with --dtype f32, not --dtype bf16"},
      {"lenet --batch 8 --workspace 100", "made with no --workspace, not --workspace 100; leave --workspace out"},
      {"lenet --batch 8 --threads 61", "not --threads 61; give --threads"},
      {"lenet --batch 8 --layout nhwc", "c/checkpoint.safetensors was made with --layout nchw, not --layout nhwc"},
      {"lenet --batch 8 --init w", "--resume takes the weights of the checkpoint; leave out --init"},
  };
  for (const auto& c : cases) EXPECT_TRUE(refuses("train " + (c.run + rest), c.part));
  EXPECT_TRUE(refuses(kRun + "--epochs 1 --resume", "has 1 epochs done of 1; ask for more with --epochs"));
  EXPECT_TRUE(works(kRun + "--epochs 2 --resume")) << "and after all that it still goes on";
}

TEST_F(ResumeTest, RefusesTheDataOfAnotherRun) {
  train_one_epoch();
  for (const auto& [name, count] : std::map<std::string, int>{{"train", 40}, {"t10k", 20}}) {
    const char n = static_cast<char>(count);
    write(name + "-images-idx3-ubyte", Bytes{0, 0, 8, 3, 0, 0, 0, n, 0, 0, 0, 28, 0, 0, 0, 28} + Bytes(count * 784, 1));
    write(name + "-labels-idx1-ubyte", Bytes{0, 0, 8, 1, 0, 0, 0, n} + Bytes(count, 1));
  }
  EXPECT_TRUE(refuses(kRun + "--epochs 2 --resume --data .", "made with --data synthetic, not the data of mnist"));
}

TEST_F(ResumeTest, RefusesCheckpointsThatAreMissingOrDamaged) {
  EXPECT_TRUE(
      refuses(kRun + "--epochs 2 --resume", "there is no checkpoint in c: c/checkpoint.safetensors is missing"));
  train_one_epoch();
  const Bytes good = read(std::string("c") + kFile);
  const auto damaged = [&](const Bytes& bytes) {
    write(std::string("c") + kFile, bytes);
    return kRun + "--epochs 2 --resume";
  };
  Bytes renamed = good;
  renamed.replace(renamed.find("conv1.weight"), 12, "conv1.height");
  EXPECT_TRUE(refuses(damaged(good.substr(0, good.size() - 1)), "it is cut short: the data of tensor"));
  EXPECT_TRUE(refuses(damaged(renamed), "\"model.conv1.height\", which this run lacks"));
  EXPECT_TRUE(works(damaged(good)));
}

TEST_F(ResumeTest, RefusesAnOptimizerThatMakesNoSense) {
  train_one_epoch();
  const fs::path file = path(std::string("c") + kFile);
  const models::TensorFile good = models::load_safetensors(file);
  const auto with = [&](const std::string& name, const Tensor& tensor) {
    auto tensors = good.tensors;
    for (auto& t : tensors) {
      if (t.name == name) t.tensor = tensor;
    }
    models::save_safetensors(file, tensors, good.metadata);
    return kRun + "--epochs 2 --resume";
  };
  for (const int64_t step : {int64_t{-1}, int64_t{0}, int64_t{4}, INT64_MAX}) {
    EXPECT_TRUE(refuses(with("optimizer.step", Tensor::from<int64_t>({step}, Shape{})),
                        "safetensors is not a checkpoint of this run: it has " + std::to_string(step) +
                            " steps done in 1 epochs, where an epoch has 3"));
  }
  for (const float rate : {-1.f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    EXPECT_TRUE(refuses(with("optimizer.learning_rate", Tensor::from({rate}, Shape{})),
                        "safetensors is not a valid checkpoint: its learning rate is"));
  }
  EXPECT_TRUE(works(with("none", {})));
}

TEST_F(ResumeTest, AFullDiskLeavesTheOldCheckpointWhole) {
  train_one_epoch();
  const Bytes old = read(std::string("c") + kFile);
  const auto before = files();

  const auto o = run(kRun + "--epochs 2 --resume", {.largest_file = old.size() / 2});

  EXPECT_TRUE(is_refusal(o, "c/checkpoint.safetensors cannot be written: File too large"));
  EXPECT_EQ(files(), before);
  EXPECT_TRUE(read(std::string("c") + kFile) == old);
  EXPECT_TRUE(works(kRun + "--epochs 2 --resume"));
}

}  // namespace
}  // namespace plumb::app
