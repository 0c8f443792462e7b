#include "train/checkpoint.h"

#include <gtest/gtest.h>

#include <fstream>

#include "models/safetensors.h"
#include "ops/random.h"
#include "tests/support/compare.h"
#include "tests/support/folder.h"

namespace plumb::training {
namespace {

namespace fs = std::filesystem;
using models::NamedTensor;
using test::bitwise_equal;
using test::refused;

const std::map<std::string, std::string> kConfig{{"batch", "250"}, {"model", "alexnet"}, {"optimizer", "adam"}};

/// A folder of the test's own, removed at its end; a run's state, and the state of another run of the same kind.
class CheckpointTest : public ::testing::Test {
 protected:
  static std::vector<NamedTensor> state(uint64_t seed) {
    return {{"model.conv1.weight", normal(TensorSpec(Shape{4, 3, 2, 2}), 0, 1, seed)},
            {"optimizer.step", normal(TensorSpec(Shape{}, DType::kF64), 0, 1, seed + 1)},
            {"generator", uniform(TensorSpec(Shape{2}, DType::kI64), -1e9, 1e9, seed + 2)}};
  }
  static testing::AssertionResult same(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (auto equal = bitwise_equal(a[i].tensor, b[i].tensor); !equal) return equal << " in " << a[i].name;
    }
    return testing::AssertionSuccess();
  }
  /// Loading must throw `part` and leave the state alone.
  testing::AssertionResult refuses(const std::vector<NamedTensor>& into, const std::string& part) const {
    std::vector<NamedTensor> before;
    for (const auto& [name, tensor] : into)
      before.push_back({name, test::converted(tensor, tensor.dtype(), tensor.layout())});
    const auto result = refused([&] { load_checkpoint(folder_, into); }, part);
    return result ? same(into, before) : result;
  }
  /// A checkpoint whose metadata has one entry changed, or removed.
  void save_with(const std::string& key, const std::string& value) const {
    if (!fs::exists(root_ / "good")) save_checkpoint(root_ / "good", state(1), saved_);
    const models::TensorFile file = models::load_safetensors(root_ / "good" / "checkpoint.safetensors");
    auto metadata = file.metadata;
    metadata[key] = value;
    if (value.empty()) metadata.erase(key);
    fs::create_directories(folder_);
    models::save_safetensors(file_, file.tensors, metadata);
  }

  const Checkpoint saved_{
      7, kConfig, {{"conv2d \"a\"\tf32", "winograd_f4x4"}, {"layout of alexnet", "nhwc"}}, Layout::kNhwc};
  const test::Folder own_folder_;
  const fs::path root_ = own_folder_.path(), folder_ = root_ / "runs" / "first",
                 file_ = folder_ / "checkpoint.safetensors";
};

TEST_F(CheckpointTest, RoundTripsInPlaceBitForBit) {
  const auto source = state(1), into = state(9);
  const void* address = into[0].tensor.value->data;
  const uint32_t version = into[0].tensor.value->version();

  save_checkpoint(folder_, source, saved_);
  const Checkpoint loaded = load_checkpoint(folder_, into);

  EXPECT_TRUE(same(into, source));
  EXPECT_EQ(into[0].tensor.value->data, address);
  EXPECT_GT(into[0].tensor.value->version(), version);
  for (const Checkpoint& c : {loaded, peek_checkpoint(folder_)}) {
    EXPECT_EQ(c.epochs_done, 7);
    EXPECT_EQ(c.config, kConfig);
    EXPECT_EQ(c.choices, saved_.choices);
    EXPECT_EQ(c.layout, Layout::kNhwc);
  }
}

// The keys of the metadata: files that were written before stay readable.
TEST_F(CheckpointTest, ReadsWhatWasWrittenBefore) {
  fs::create_directories(folder_);
  models::save_safetensors(file_, state(1),
                           {{"format", "plumbline checkpoint"},
                            {"version", "2"},
                            {"epochs_done", "7"},
                            {"layout", "nhwc"},
                            {"choices", R"({"layout of alexnet":"nhwc"})"},
                            {"config.convention", "keras"}});
  const auto into = state(9);
  const Checkpoint loaded = load_checkpoint(folder_, into);

  EXPECT_TRUE(same(into, state(1)));
  EXPECT_EQ(loaded.epochs_done, 7);
  EXPECT_EQ(loaded.layout, Layout::kNhwc);
  EXPECT_EQ(loaded.choices, (TunedAlgorithms{{"layout of alexnet", "nhwc"}}));
  EXPECT_EQ(loaded.config, (std::map<std::string, std::string>{{"convention", "keras"}}));
  EXPECT_EQ(convention_of(file_), Convention::kKeras);

  save_checkpoint(root_ / "again", into, loaded);
  EXPECT_EQ(test::content(root_ / "again" / "checkpoint.safetensors"), test::content(file_));
}

TEST_F(CheckpointTest, TheSameStateGivesTheSameBytes) {
  const auto bytes = [&] { return test::content(file_); };
  save_checkpoint(folder_, state(1), saved_);
  const std::string first = bytes();

  save_checkpoint(folder_, state(2), saved_);
  EXPECT_NE(bytes(), first);
  save_checkpoint(folder_, state(1), saved_);
  EXPECT_EQ(bytes(), first);
}

TEST_F(CheckpointTest, RefusesAnotherState) {
  save_checkpoint(folder_, state(1), saved_);
  auto into = state(9);
  into[2].name = "dice";
  EXPECT_TRUE(refuses(into, "has tensor \"generator\", which this run lacks"));
  into = state(9);
  into.push_back({"optimizer.m", into[0].tensor});
  EXPECT_TRUE(refuses(into, "lacks tensor \"optimizer.m\""));
  into = state(9);
  into.push_back(into[0]);
  EXPECT_TRUE(refuses(into, "two tensors are called"));
  into = state(9);
  into.pop_back();
  EXPECT_TRUE(refuses(into, "has tensor \"generator\", which this run lacks"));
  for (const TensorSpec& other : {TensorSpec(Shape{4, 3, 4}), TensorSpec(Shape{4, 3, 2, 2}, DType::kF64),
                                  TensorSpec(Shape{4, 3, 2, 2}, DType::kF32, Layout::kNhwc)}) {
    into = state(9);
    into[0].tensor = uniform(other, 0, 1, 1);
    EXPECT_TRUE(
        refuses(into, "has tensor \"model.conv1.weight\" as f32 (4, 3, 2, 2) nchw, this run as " + to_string(other)));
  }
}

TEST_F(CheckpointTest, RefusesWhatIsNoCheckpoint) {
  EXPECT_TRUE(
      refuses(state(9), "there is no checkpoint in " + folder_.string() + ": " + file_.string() + " is missing"));
  EXPECT_TRUE(refused([&] { peek_checkpoint(folder_); }, "there is no checkpoint in"));
  fs::create_directories(folder_);
  models::save_safetensors(file_, state(1));
  EXPECT_TRUE(refuses(state(9), "is not a checkpoint: its metadata has no \"format\""));
  std::ofstream(file_) << "no tensors at all";
  EXPECT_TRUE(refuses(state(9), "is not a valid safetensors file"));
  save_checkpoint(folder_, state(1), saved_);
  fs::resize_file(file_, fs::file_size(file_) - 1);
  EXPECT_TRUE(refuses(state(9), "it is cut short: the data of tensor \"generator\""));
}

TEST_F(CheckpointTest, RefusesMetadataThatMakesNoSense) {
  const struct {
    const char *key, *value, *part;
  } cases[] = {
      {"format", "pt", "is not a checkpoint: its format is \"pt\""},
      {"version", "1", "has version \"1\" of the checkpoint format, this program reads 2"},
      {"epochs_done", "-1", "\"-1\" is no number of epochs"},
      {"epochs_done", "7 ", "\"7 \" is no number of epochs"},
      {"epochs_done", "99999999999999999999", "is no number of epochs"},
      {"epochs_done", "", "its metadata has no \"epochs_done\""},
      {"layout", "", "its metadata has no \"layout\""},
      {"layout", "nhcw", "its layout is \"nhcw\""},
      {"choices", "", "its metadata has no \"choices\""},
      {"choices", "{", "its choices are not an object of texts"},
      {"choices", "[\"a\"]", "its choices are not an object of texts"},
      {"choices", "{\"a\":1}", "its choices are not an object of texts"},
  };
  for (const auto& c : cases) {
    save_with(c.key, c.value);
    EXPECT_TRUE(refuses(state(9), c.part));
    EXPECT_TRUE(refused([&] { peek_checkpoint(folder_); }, c.part));
  }
  save_with("choices", std::string(100'000, '['));
  EXPECT_TRUE(refuses(state(9), "its choices are not an object of texts"));
}

TEST_F(CheckpointTest, TheOldOneStaysWholeWhenTheDiskIsFull) {
  save_checkpoint(folder_, state(1), saved_);
  const auto result = [&] {
    const test::FullDisk full(fs::file_size(file_) - 1);
    return refused([&] { save_checkpoint(folder_, state(2), saved_); }, "cannot be written: File too large");
  }();

  EXPECT_TRUE(result);
  const auto into = state(9);
  load_checkpoint(folder_, into);
  EXPECT_TRUE(same(into, state(1)));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(CheckpointTest, RefusesFoldersThatCannotBeMade) {
  std::ofstream(root_ / "file") << "in the way";
  EXPECT_TRUE(refused([&] { save_checkpoint(root_ / "file", state(1), saved_); },
                      "the folder " + (root_ / "file").string() + " for checkpoints cannot be made: Not a directory"));
  EXPECT_TRUE(
      refused([&] { save_checkpoint(root_ / "file" / "x", state(1), saved_); }, "cannot be made: Not a directory"));
}

TEST_F(CheckpointTest, RefusesNamesThatAreNotUtf8) {
  Checkpoint c = saved_;
  c.choices["layout of net \xff"] = "nhwc";
  EXPECT_TRUE(refused([&] { save_checkpoint(folder_, state(1), c); }, "has a name that is not UTF-8"));
}

TEST_F(CheckpointTest, RefusesTensorsThatAreNotRowMajor) {
  auto source = state(1);
  source[0].tensor = Tensor::empty(TensorSpec(Shape{4, 3, 2, 2}, DType::kF32, Layout::kChwn));
  EXPECT_TRUE(refused([&] { save_checkpoint(folder_, source, saved_); }, "is in layout chwn"));
}

}  // namespace
}  // namespace plumb::training
