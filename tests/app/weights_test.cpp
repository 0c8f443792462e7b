// Weights from a file: those that are taken, those that are refused, and NaN among them.
#include "models/weights.h"

#include <functional>
#include <limits>

#include "models/safetensors.h"
#include "tests/app/command.h"

namespace plumb::app {
namespace {

namespace fs = std::filesystem;
using models::NamedTensor;
using test::kShortRun;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

class WeightsTest : public test::CommandTest {
 protected:
  using Change = std::function<void(std::vector<NamedTensor>&)>;

  // The weights of a fresh network, changed by `change`.
  void save(
      const std::string& name, const std::string& model, uint64_t seed, const Change& change = [](auto&) {}) const {
    const auto network = models::make_network(model, seed);
    std::vector<NamedTensor> all = network->parameters();
    all.insert(all.end(), network->buffers().begin(), network->buffers().end());
    change(all);
    models::save_safetensors(path(name), all);
  }
  enum class Place { kFirst, kLast };
  // Lenet's, with one other number in the first parameter or in the last.
  void save_with(float value, const std::string& name, Place place) const {
    save(name, "lenet", 1, [&](auto& all) {
      Tensor& t = (place == Place::kFirst ? all.front() : all.back()).tensor;
      t.mutable_data<float>()[7] = value;
    });
  }
  // Training and evaluation must both refuse the weights in a file.
  testing::AssertionResult refuses_weights(const std::string& file, const std::string& part) const {
    const auto trained = refuses(kShortRun + "--init " + file, part);
    return trained ? refuses("eval lenet --data synthetic --limit 8 --weights " + file, part) : trained;
  }
};

TEST_F(WeightsTest, InitStartsFromTheWeightsOfTheFile) {
  save("w", "lenet", 5);
  const auto trained = report_of(kShortRun + "--init w --lr 0 --seed 9");
  const auto evaluated = report_of("eval lenet --weights w --data synthetic --limit 16 --layout nchw");

  EXPECT_NEAR(trained["epochs"][0]["test_loss"].get<double>(), evaluated["loss"].get<double>(), 1e-6);
  EXPECT_NE(trained["epochs"][0]["test_loss"], report_of(kShortRun + "--lr 0 --seed 9")["epochs"][0]["test_loss"]);
}

TEST_F(WeightsTest, TakesTheWeightsOfACheckpoint) {
  ASSERT_TRUE(works(kShortRun + "--checkpoint c --json t.json"));
  const double loss = read_json("t.json")["epochs"][0]["test_loss"];
  for (const std::string weights : {"c", "c/checkpoint.safetensors"}) {
    const auto evaluated = report_of("eval lenet --data synthetic --limit 16 --layout nchw --weights " + weights);
    EXPECT_NEAR(evaluated["loss"].get<double>(), loss, 1e-6);
    const auto trained = report_of(kShortRun + "--lr 0 --init " + weights);
    EXPECT_NEAR(trained["epochs"][0]["test_loss"].get<double>(), loss, 1e-6);
  }
  EXPECT_TRUE(refuses("eval resnet20 --data synthetic --limit 8 --weights c",
                      "c/checkpoint.safetensors is a checkpoint of \"lenet\", not of resnet20"));
}

// What else is not taken: tests/models/weights_test.cpp.
TEST_F(WeightsTest, RefusesTheWeightsOfAnotherNetwork) {
  save("resnet", "resnet20", 1);
  EXPECT_TRUE(refuses_weights("resnet", "resnet does not hold the weights of lenet: it lacks \"conv1.bias\""));
}

// What else is none: tests/models/safetensors_header_test.cpp.
TEST_F(WeightsTest, RefusesFilesThatAreNoSafetensors) {
  EXPECT_TRUE(refuses_weights("none", "the file none is missing"));
  EXPECT_TRUE(refuses_weights(".", ". is a folder, not a file"));
  save("cut", "lenet", 1);
  fs::resize_file(path("cut"), fs::file_size(path("cut")) - 1);
  EXPECT_TRUE(refuses_weights("cut", "it is cut short: the data of tensor"));
  write("bad", "no header at all");
  EXPECT_TRUE(refuses_weights("bad", "bytes, too many for the format"));
}

TEST_F(WeightsTest, CheckNanNamesTheOpThatMadeTheFirstOne) {
  save_with(kNan, "nan", Place::kLast);
  save_with(kInfinity, "infinity", Place::kLast);
  for (const std::string mode : {"eager", "captured"}) {
    const std::string line = kShortRun + "--check-nan --mode " + mode;
    EXPECT_TRUE(is_refusal(run(line + " --init nan"), "linear_forward: input 2 f32 (10) nchw holds a NaN"));
    EXPECT_TRUE(is_refusal(run(line + " --init infinity"), "cross_entropy_forward: output 0 f32 () nchw holds a NaN"));
    EXPECT_TRUE(is_refusal(run(line + " --lr 1e30"), "holds a NaN; look at its inputs, or lower the learning rate"));
    EXPECT_TRUE(works(line));
  }
}

TEST_F(WeightsTest, CheckNanFindsWhatAFusedActivationWouldHide) {
  save_with(kNan, "first", Place::kFirst);
  for (const std::string layout : {"nchw", "nhwc", "chwn"}) {
    for (const std::string mode : {"eager", "captured"}) {
      const auto o = run("train lenet --limit 16 --batch 8 --epochs 1 --algorithm heuristic --init first --check-nan " +
                         ("--layout " + layout) + " --mode " + mode);
      EXPECT_TRUE(is_refusal(o, ": input 0 f32 (6, 1, 5, 5) nchw holds a NaN") ||
                  is_refusal(o, ": input 1 f32 (6, 1, 5, 5) nchw holds a NaN"))
          << layout << " " << mode << " " << o;
    }
  }
}

TEST_F(WeightsTest, ALossThatIsNoNumberIsToldOnce) {
  save_with(kNan, "w", Place::kLast);
  const auto o =
      run("train lenet --limit 16 --layout nchw --algorithm heuristic --epochs 3 --init w --json r.json --csv r.csv");

  EXPECT_EQ(o.status, 0) << o;
  EXPECT_NE(o.out.find("loss nan"), o.out.npos) << o;
  EXPECT_EQ(o.err,
            "plumb: the loss of epoch 1 is nan; --check-nan stops at the first NaN and names the op that made it\n");
  EXPECT_TRUE(read_json("r.json")["epochs"][2]["loss"].is_null());
  EXPECT_NE(read("r.csv").find(",nan,"), Bytes::npos);

  const auto e = run("eval lenet --data synthetic --limit 16 --layout nchw --weights w --json e.json");
  EXPECT_EQ(e.status, 0) << e;
  EXPECT_NE(e.out.find("\nloss nan\n"), e.out.npos) << e;
  EXPECT_EQ(e.err,
            "plumb: the loss is nan; look for NaN or too large numbers in the weights, or in --mean and --std\n");
  EXPECT_TRUE(read_json("e.json")["loss"].is_null());
}

}  // namespace
}  // namespace plumb::app
