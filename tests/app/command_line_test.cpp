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

TEST_F(CommandLineTest, RefusesWhatItDoesNotKnow) {
  refuse_all({
      {"", "give a subcommand: train, eval, info or layout"},
      {"tarin", "tarin"},
      {"train", "model is required"},
      {"info --model lenet train lenet", "not expected"},
      {"info lenet", "not expected: lenet"},
      {"info --model lenet5", "model \"lenet5\" is unknown; use alexnet, vgg16, lenet"},
      {"layout lenet5", "model \"lenet5\" is unknown"},
      {"layout lenet --algorithm fft", "algorithm \"fft\" is unknown"},
      {"layout lenet --dtype f64", "dtype f64 is not for training; use f32 or bf16"},
      {"eval lenet --data synthetic", "--weights is required"},
      {"eval lenet --weights w", "--data is required"},
  });
  refuse_all(
      {
          {"lenet5", "model \"lenet5\" is unknown; use alexnet, vgg16, lenet"},
          {"lenet --turbo", "not expected: --turbo"},
          {"lenet --init", "--init"},
          {"lenet --epochs 1 --epochs 2", "--epochs"},
          {"lenet --optimizer adagrad", "optimizer \"adagrad\" is unknown; use sgd, adam, adamw or rmsprop"},
          {"lenet --convention jax", "convention \"jax\" is unknown; use pytorch, keras or tensorflow1"},
          {"lenet --layout nhcw", "layout \"nhcw\" is unknown; use nchw, nhwc or chwn"},
          {"lenet --algorithm fft", "algorithm \"fft\" is unknown; use measured, heuristic, direct, winograd"},
          {"lenet --dtype f99", "dtype \"f99\" is unknown"},
          {"lenet --dtype f16", "dtype f16 is not for training; use f32 or bf16"},
          {"lenet --mode traced", "mode \"traced\" is unknown; use eager or captured"},
          {"lenet --device tpu", "device \"tpu\" is unknown"},
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
          {"--threads -1", "-1 were asked for"},
          {"--threads 99999", "99999 were asked for"},
          {"--lr -0.1", "the learning rate is -0.1"},
          {"--lr nan", "the learning rate is not a number"},
          {"--lr inf", "the learning rate is inf"},
          {"--lr fast", "--lr = fast"},
          {"--momentum -1", "momentum is -1"},
          {"--weight-decay nan", "weight_decay is nan"},
      },
      test::kShortRun);
  refuse_all({
      {"train lenet --limit 8 --batch 0", "a batch of 0 images was asked for; use at least 1"},
      {"train lenet --limit 8 --batch -3", "a batch of -3 images was asked for; use at least 1"},
      {"train lenet --limit 8 --batch 1e3", "--batch: \"1e3\" is not a whole number"},
      {"train lenet --limit 8 --batch 99999999999999999999", "--batch: 99999999999999999999 does not fit into 64 bits"},
      {"train lenet --limit 8 --epochs 0", "0 epochs were asked for; use at least 1"},
      {"train lenet --limit 8 --epochs -1", "-1 epochs were asked for; use at least 1"},
      {"train lenet --limit -1", "-1 images were asked for"},
      {"layout lenet --batch 0", "batch 0 is none; use 1 or more"},
      {"info --model lenet --threads 0.5", "--threads: \"0.5\" is not a whole number"},
  });
}

TEST_F(CommandLineTest, ZerosInFrontDoNotMakeANumberOctal) {
  EXPECT_EQ(report_of("train lenet --limit 010 --batch 010 --epochs 01 --layout nchw")["config"]["limit"], "10");
}

TEST_F(CommandLineTest, TakesTheSevenArgumentsOfTheCoursework) {
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
          {"cpu ref", "the seven arguments DEVICE ref MODEL EPOCHS BATCH OPTIMIZER LEARNING_RATE; 2 were given"},
          {"cpu ref lenet 1 8 sgd", "6 were given"},
          {"cpu ref lenet 1 8 sgd 0.1 more", "8 were given"},
          {"tpu ref lenet 1 8 sgd 0.1", "device \"tpu\" is unknown"},
          {"cpu tensorflow lenet 1 8 sgd 0.1", "the framework \"tensorflow\" is not this one"},
          {"cpu ref lenet5 1 8 sgd 0.1", "model \"lenet5\" is unknown"},
          {"cpu ref lenet one 8 sgd 0.1", "\"one\" is not a whole number"},
          {"cpu ref lenet 0 8 sgd 0.1", "0 epochs were asked for"},
          {"cpu ref lenet 1 8.5 sgd 0.1", "\"8.5\" is not a whole number"},
          {"cpu ref lenet 1 0 sgd 0.1", "a batch of 0 images"},
          {"cpu ref lenet 1 8 sdg 0.1", "optimizer \"sdg\" is unknown"},
          {"cpu ref lenet 1 8 sgd 0.1x", "the learning rate \"0.1x\" is not a number"},
          {"cpu ref lenet 1 8 sgd nan", "the learning rate is not a number"},
          {"cpu ref lenet 1 8 sgd 0.1 --batch 9", "the seven arguments already say what --batch would"},
      },
      "train --limit 8 ");
}

}  // namespace
}  // namespace plumb::app
