// Two epochs of both networks by the command on a GPU, in every dtype: captured as eager, and learning.
#include <cstdlib>

#include "tests/app/command.h"

namespace plumb::app {
namespace {

class GpuCommandTest : public test::CommandTest, public testing::WithParamInterface<const char*> {
 protected:
  // Real images where there are any.
  static std::string data() {
    const char* folder = std::getenv("PLUMB_DATA");
    return folder && *folder ? folder : "synthetic";
  }
};

TEST_P(GpuCommandTest, TrainsTwoEpochsInEveryDtype) {
  for (const std::string dtype : {"f32", "tf32", "bf16"}) {
    SCOPED_TRACE(dtype);
    const std::string line = std::string("train ") + GetParam() + " --device cuda --data " + data() +
                             " --limit 2000 --epochs 2 --batch 100 --optimizer adam --lr 0.0001 --algorithm heuristic" +
                             " --layout nhwc --dtype " + dtype + " --mode ";
    const test::Json eager = report_of(line + "eager"), captured = report_of(line + "captured");
    ASSERT_EQ(eager["epochs"].size(), 2u);
    for (size_t i = 0; i < 2; ++i) {
      for (const char* key : {"loss", "test_loss", "train_accuracy", "test_accuracy"})
        EXPECT_EQ(captured["epochs"][i][key], eager["epochs"][i][key]) << key;
    }
    EXPECT_LT(eager["epochs"][1]["loss"].get<double>(), eager["epochs"][0]["loss"].get<double>());
    EXPECT_GT(captured["transfers"]["graph_replays"], 30);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, GpuCommandTest, testing::Values("alexnet", "vgg16"));

}  // namespace
}  // namespace plumb::app
