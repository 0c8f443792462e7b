#include <cstdlib>

#include "tests/app/command.h"

namespace plumb::app {
namespace {

class RealDataCommand : public test::CommandTest {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("PLUMB_DATA");
    if (!folder || !*folder) GTEST_SKIP() << "PLUMB_DATA does not name the folder of the data sets";
    data_ = std::filesystem::absolute(folder).string();
  }
  std::string data_;
};

TEST_F(RealDataCommand, EveryNetworkTrainsOnItsDataSet) {
  const struct {
    const char *model, *set;
  } cases[] = {{"lenet", "mnist"}, {"resnet20", "cifar10"}, {"vgg16", "cifar100"}};
  for (const auto& c : cases) {
    const test::Outcome o = run(std::string("train ") + c.model + " --data " + data_ +
                                " --limit 8 --batch 4 --epochs 1 --layout nchw --algorithm heuristic --json r.json");
    EXPECT_EQ(o.status, 0) << o;
    EXPECT_NE(o.out.find(std::string("on ") + c.set + ", 8 + 8 images"), o.out.npos) << o;
    EXPECT_EQ(read_json("r.json")["config"]["data"], c.set);
  }
}

TEST_F(RealDataCommand, LenetLearnsDigits) {
  const auto report =
      report_of("train lenet --data " + data_ + " --limit 2000 --batch 50 --epochs 3 --optimizer adam " +
                "--layout nchw --algorithm heuristic");
  EXPECT_GT(report["epochs"][2]["test_accuracy"], 0.8);
}

}  // namespace
}  // namespace plumb::app
