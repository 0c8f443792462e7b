#include <sstream>

#include "tests/app/command.h"

namespace plumb::app {
namespace {

struct Bad {
  const char *line, *part;
};

class CommandLineTest : public test::CommandTest {
 protected:
  void refuse_all(std::initializer_list<Bad> cases, const std::string& common = "") const {
    for (const Bad& c : cases) EXPECT_TRUE(refuses(common + c.line, c.part));
  }
};

TEST_F(CommandLineTest, EverySubcommandHasHelp) {
  const std::map<std::string, std::string> expected{{"train", "--check-nan"},
                                                    {"eval", "--weights"},
                                                    {"info", "--model"},
                                                    {"layout", "--dtype"},
                                                    {"", "Subcommands:"}};
  for (const auto& [subcommand, part] : expected) {
    const test::Outcome o = run(subcommand + " --help");
    EXPECT_EQ(o.status, 0) << o;
    EXPECT_NE(o.out.find("Usage: plumb " + subcommand), o.out.npos) << o;
    EXPECT_NE(o.out.find(part), o.out.npos) << o;
    EXPECT_EQ(o.err, "");
  }
}

TEST_F(CommandLineTest, TheVersionNamesTheLibraries) {
  const test::Outcome o = run("--version");
  EXPECT_EQ(o.status, 0);
  for (const char* part : {"plumb ", "oneDNN ", "Eigen "}) EXPECT_NE(o.out.find(part), o.out.npos) << o;
}

TEST_F(CommandLineTest, ReportsBeginTheEnvironmentWithTheVersion) {
  ASSERT_TRUE(works(test::kShortRun + "--json report.json"));

  const auto environment = nlohmann::ordered_json::parse(read("report.json"))["environment"];
  EXPECT_EQ(environment.begin().key(), "plumbline");
  EXPECT_TRUE(run("--version").out.starts_with("plumb " + environment["plumbline"].get<std::string>() + "\n"));
}

TEST_F(CommandLineTest, RefusesWhatItDoesNotKnow) {
  refuse_all({
      {"", "give a subcommand: train, eval, info, layout, plan or audit"},
      {"tarin", "tarin"},
      {"train", "model is required"},
      {"info --model lenet train lenet", "not expected"},
      {"Train lenet", "\"Train\" is no subcommand; use train, eval, info"},
      {"train lenet --augment=2", "--augment takes no value"},
      {"train lenet --augment --augment", "--augment was given twice"},
      {"info lenet", "not expected: lenet"},
      {"info --model lenet5", "\"lenet5\" is unknown; use alexnet, vgg16, lenet"},
      {"layout lenet5", "\"lenet5\" is unknown"},
      {"layout lenet --algorithm fft", "--algorithm: \"fft\" is unknown"},
      {"layout lenet --dtype tf32", "--dtype tf32: cpu has no tensor cores; use f32 or bf16"},
      {"layout lenet --dtype f64", "--dtype: \"f64\" is unknown; use f32, tf32 or bf16"},
      {"eval lenet --data synthetic", "--weights is required"},
      {"eval lenet --weights w", "--data is required"},
  });
  refuse_all(
      {
          {"lenet5", "\"lenet5\" is unknown; use alexnet, vgg16, lenet"},
          {"lenet --turbo", "not expected: --turbo"},
          {"lenet --init", "--init needs a value"},
          {"lenet --epochs 1 --epochs 2", "--epochs was given twice"},
          {"lenet --json a --json b --json c", "--json was given several times"},
          {"lenet --optimizer adagrad", "--optimizer: \"adagrad\" is unknown; use sgd, adam, adamw or rmsprop"},
          {"lenet --convention jax", "--convention: \"jax\" is unknown; use pytorch, keras or tensorflow1"},
          {"lenet --layout nhcw", "--layout: \"nhcw\" is unknown; use auto, nchw, nhwc or chwn"},
          {"lenet --algorithm fft",
           "--algorithm: \"fft\" is unknown; use measured, heuristic, heuristic_b, fallback, deterministic, direct, "
           "winograd, cudnn or cublaslt"},
          {"lenet --algorithm cudnn_e38", "--algorithm cudnn_e38: cpu has no such kernels; they are a GPU's"},
          {"lenet --workspace much", "--workspace: \"much\" is not a whole number of at least 0"},
          {"lenet --dtype f99", "--dtype: \"f99\" is unknown; use f32, tf32 or bf16"},
          {"lenet --mode traced", "--mode: \"traced\" is unknown; use eager or captured"},
          {"lenet --device tpu", "--device: \"tpu\" is unknown; use cpu"},
          {"lenet --convention tensorflow1", "tensorflow1 has no default learning rate"},
          {"lenet --optimizer adam --momentum 0.9", "adam: it has no momentum to set"},
          {"lenet --resume", "--resume needs --checkpoint DIR"},
      },
      "train --limit 8 ");
}

TEST_F(CommandLineTest, RefusesNumbersOutOfRange) {
  refuse_all(
      {
          {"--seed -1", "--seed: \"-1\" is not a whole number of at least 0"},
          {"--threads -1", "--threads: -1 is too small; use at least 1"},
          {"--threads 0", "--threads: 0 is too small; use at least 1"},
          {"--threads 99999", "--threads: 99999 is too large; use at most 4096"},
          {"--lr -0.1", "--lr: -0.1 is too small; use a number of at least 0"},
          {"--lr nan", "--lr: \"nan\" is not a finite number"},
          {"--lr inf", "--lr: \"inf\" is not a finite number"},
          {"--lr fast", "--lr: \"fast\" is not a number"},
          {"--lr 1e39", "--lr: \"1e39\" is too large; use at most 3.4e38"},
          {"--lr 1e400", "--lr: \"1e400\" is too large"},
          {"--lr 1e-400", "--lr: \"1e-400\" is too small; use 0, or at least 1.2e-38"},
          {"--lr 1e-310", "--lr: \"1e-310\" is too small"},
          {"--momentum -1", "--momentum: -1 is too small"},
          {"--weight-decay nan", "--weight-decay: \"nan\" is not a finite number"},
      },
      test::kShortRun);
  refuse_all({
      {"train lenet --limit 8 --batch 0", "--batch: 0 is too small; use at least 1"},
      {"train lenet --limit 8 --batch -3", "--batch: -3 is too small; use at least 1"},
      {"train lenet --limit 8 --batch 1e3", "--batch: \"1e3\" is not a whole number"},
      {"train lenet --limit 8 --batch 99999999999999999999",
       "--batch: \"99999999999999999999\" is too large; use at most 2147483647"},
      {"train lenet --limit 8 --epochs 0", "--epochs: 0 is too small; use at least 1"},
      {"train lenet --limit 8 --epochs -1", "--epochs: -1 is too small; use at least 1"},
      {"train lenet --limit -1", "--limit: -1 is too small; use at least 0"},
      {"layout lenet --batch 0", "--batch: 0 is too small; use at least 1"},
      {"layout lenet --batch 4611686018427387904", "--batch: 4611686018427387904 is too large; use at most 2147483647"},
      {"info --model lenet --threads 0.5", "--threads: \"0.5\" is not a whole number"},
  });
}

TEST_F(CommandLineTest, ThreadsComeFromTheEnvironmentWithinReason) {
  EXPECT_TRUE(refuses(test::kShortRun, "OMP_NUM_THREADS asks for 100000 threads; use at most 4096",
                      {.variable = "OMP_NUM_THREADS=100000"}));
  EXPECT_TRUE(works(test::kShortRun, {.variable = "OMP_DYNAMIC=true"}));
  EXPECT_TRUE(works(test::kShortRun, {.variable = "OMP_THREAD_LIMIT=1"}));
  EXPECT_TRUE(refuses(test::kShortRun + "--threads 2", "--threads: 2 is too large; use at most 1",
                      {.variable = "OMP_THREAD_LIMIT=1"}));
}

TEST_F(CommandLineTest, MessagesStayOnOneLine) {
  const auto refusal = run(test::kShortRun + "--data a\x1b[31m\x07");
  EXPECT_TRUE(test::is_refusal(refusal, "a?[31m? is not a folder"));
}

TEST_F(CommandLineTest, RefusesEmptyValues) {
  for (const std::string option : {"--json", "--csv", "--profile", "--checkpoint", "--init", "--data", "--dtype"}) {
    EXPECT_TRUE(refuses(test::kShortRun + option + " ''", option + ": "));
  }
  for (const std::string option : {"--lr", "--momentum", "--weight-decay"}) {
    EXPECT_TRUE(refuses(test::kShortRun + option + " ''", option + ": \"\" is not a number"));
  }
  refuse_all({
      {"info --model ''", "--model: "},
      {"eval lenet --data synthetic --weights ''", "--weights: its value is empty; give one, or leave it out"},
      {"eval lenet --weights w --data ''", "--data: its value is empty"},
      {"eval lenet --weights w --data synthetic --mean '' --std 1", "--mean: its value is empty"},
      {"train ''", "model: its value is empty"},
  });
}

TEST_F(CommandLineTest, ListsWhatItTakes) {
  const test::Outcome o = run("train --help");
  std::string text;  // the help is broken into lines anywhere
  std::istringstream words(o.out);
  for (std::string word; words >> word;) text += word + " ";
  for (const char* choices :
       {"alexnet, vgg16, lenet, resnet20, resnet32, resnet44, resnet56, resnet50 or vgg",
        "or with --algorithm deterministic nhwc (of f32 on a GPU nchw): auto, nchw, nhwc or chwn",
        "of the first 200000 kernels", "f32, tf32 or bf16",
        "measured, heuristic, heuristic_b, fallback, deterministic, direct, winograd, cudnn or cublaslt",
        "where FRAMEWORK is ref, this one"}) {
    EXPECT_NE(text.find(choices), text.npos) << choices << "\n" << text;
  }
}

TEST_F(CommandLineTest, ZerosInFrontDoNotMakeANumberOctal) {
  EXPECT_EQ(report_of("train lenet --limit 010 --batch 010 --epochs 01 --layout nchw")["config"]["limit"], "10");
}

TEST_F(CommandLineTest, TakesTheSevenArgumentsOfScripts) {
  const auto report = report_of("train cpu ref lenet 2 8 adam 0.002 --limit 16 --layout nchw");

  const auto& config = report["config"];
  EXPECT_EQ(config["device"], "cpu");
  EXPECT_EQ(config["model"], "lenet");
  EXPECT_EQ(config["epochs"], 2);
  EXPECT_EQ(config["batch"], "8");
  EXPECT_EQ(config["optimizer"], "adam");
  EXPECT_EQ(config["learning_rate"], "0.002");
  EXPECT_EQ(report["epochs"].size(), 2u);
  EXPECT_EQ(report["steps_ms"].size(), 4u);
}

TEST_F(CommandLineTest, RefusesTheSevenArgumentsWhenTheyAreWrong) {
  refuse_all(
      {
          {"cpu ref", "the seven arguments DEVICE FRAMEWORK MODEL EPOCHS BATCH OPTIMIZER LEARNING_RATE; 2 were given"},
          {"cpu ref lenet 1 8 sgd", "6 were given"},
          {"cpu ref lenet 1 8 sgd 0.1 more", "8 were given"},
          {"tpu ref lenet 1 8 sgd 0.1", "DEVICE: \"tpu\" is unknown; use cpu"},
          {"cpu tensorflow lenet 1 8 sgd 0.1", "FRAMEWORK: \"tensorflow\" is unknown; use ref"},
          {"cpu ref lenet5 1 8 sgd 0.1", "MODEL: \"lenet5\" is unknown"},
          {"cpu ref lenet one 8 sgd 0.1", "EPOCHS: \"one\" is not a whole number"},
          {"cpu ref lenet 0 8 sgd 0.1", "EPOCHS: 0 is too small"},
          {"cpu ref lenet 1 8.5 sgd 0.1", "BATCH: \"8.5\" is not a whole number"},
          {"cpu ref lenet 1 0 sgd 0.1", "BATCH: 0 is too small"},
          {"cpu ref lenet 1 8 sdg 0.1", "OPTIMIZER: \"sdg\" is unknown"},
          {"cpu ref lenet 1 8 sgd 0.1x", "LEARNING_RATE: \"0.1x\" is not a number"},
          {"cpu ref lenet 1 8 sgd nan", "LEARNING_RATE: \"nan\" is not a finite number"},
          {"cpu ref lenet 1 8 sgd 0.1 --batch 9", "LEARNING_RATE already say what --batch would; leave it out"},
      },
      "train --limit 8 ");
}

}  // namespace
}  // namespace plumb::app
