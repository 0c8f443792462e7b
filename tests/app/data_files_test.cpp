// Data sets on disk that are whole, and that are not.
#include "app/data_source.h"
#include "tests/app/command.h"

namespace plumb::app {
namespace {

namespace fs = std::filesystem;

class DataFilesTest : public test::CommandTest {
 protected:
  // An idx file of bytes: its magic number, its extents, and so many bytes of `value`.
  static Bytes idx(std::vector<uint32_t> extents, size_t bytes, char value = 0) {
    Bytes file{0, 0, 8, static_cast<char>(extents.size())};
    for (const uint32_t n : extents) {
      for (const int shift : {24, 16, 8, 0}) file += static_cast<char>(n >> shift);
    }
    return file + Bytes(bytes, value);
  }
  // Sixteen images to train on and eight to test on.
  void write_mnist() const {
    write("mnist/train-images-idx3-ubyte", idx({16, 28, 28}, 16 * 28 * 28, 77));
    write("mnist/train-labels-idx1-ubyte", idx({16}, 16, 3));
    write("mnist/t10k-images-idx3-ubyte", idx({8, 28, 28}, 8 * 28 * 28, 77));
    write("mnist/t10k-labels-idx1-ubyte", idx({8}, 8, 3));
  }
  testing::AssertionResult refuses_set(const std::string& model, const std::string& part) const {
    return refuses("train " + model + " --layout nchw --batch 8 --limit 8 --epochs 1 --data .", part);
  }
};

TEST_F(DataFilesTest, TrainsOnTheFilesOfAFolder) {
  write_mnist();
  for (const std::string folder : {".", "mnist"}) {
    const test::Outcome o = run(test::kShortRun + "--json report.json --data " + folder);
    EXPECT_EQ(o.status, 0) << o;
    EXPECT_NE(o.out.find("on mnist, 16 + 8 images"), o.out.npos) << o;
    EXPECT_EQ(read_json("report.json")["config"]["data"], "mnist");
  }
}

TEST_F(DataFilesTest, TakesAsManyImagesOfEachSplitAsItIsLimitedTo) {
  write_mnist();
  const test::Outcome o =
      run("train lenet --limit 5 --batch 4 --layout nchw --algorithm heuristic --epochs 1 --data .");
  EXPECT_EQ(o.status, 0) << o;
  EXPECT_NE(o.out.find("on mnist, 5 + 5 images"), o.out.npos) << o;
}

TEST_F(DataFilesTest, EvaluationNeedsTheTestSplitAlone) {
  write_mnist();
  ASSERT_TRUE(works(test::kShortRun + "--data . --checkpoint c"));
  for (const char* file : {"images-idx3-ubyte", "labels-idx1-ubyte"})
    fs::remove(path(std::string("mnist/train-") + file));
  EXPECT_EQ(report_of("eval lenet --weights c --data .")["total"], 8);
}

TEST_F(DataFilesTest, OutputsMayNotReplaceTheData) {
  write_mnist();
  const std::string data = "--data . ", images = "mnist/train-images-idx3-ubyte",
                    labels = "mnist/t10k-labels-idx1-ubyte";
  EXPECT_TRUE(refuses(test::kShortRun + data + "--json " + images, "--data and --json name the same file " + images));
  EXPECT_TRUE(refuses(test::kShortRun + data + "--csv " + labels, "--data and --csv name the same file " + labels));
  ASSERT_TRUE(works(test::kShortRun + data + "--checkpoint c"));
  EXPECT_TRUE(refuses("eval lenet --weights c --data . --json " + labels, "--data and --json name the same file"));
}

TEST_F(DataFilesTest, RefusesFoldersWithoutTheFiles) {
  write("file", "");
  const std::string line = "train lenet --limit 8 --data ";
  EXPECT_TRUE(refuses(line + "none", "mnist: none is not a folder"));
  EXPECT_TRUE(refuses(line + "file", "mnist: file is not a folder"));
  EXPECT_TRUE(refuses(line + ".", "the file train-images-idx3-ubyte is neither in . nor in ./mnist"));
  EXPECT_TRUE(refuses_set("resnet20", "the file data_batch_1.bin is neither in . nor in ./cifar-10-batches-bin"));
  EXPECT_TRUE(refuses_set("vgg16", "the file train.bin is neither in . nor in ./cifar-100-binary"));
  EXPECT_TRUE(refuses_set("resnet50", "--data .: ImageNet's files are not read; give --data synthetic for resnet50"));
  for (const char* file : {"train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    write_mnist();
    fs::remove(path("mnist") / file);
    EXPECT_TRUE(refuses_set("lenet", file));
  }
}

// A file of each kind; all else that is refused is a matter of tests/data/readers_test.cpp.
TEST_F(DataFilesTest, RefusesFilesThatAreNotWhole) {
  write_mnist();
  write("mnist/train-images-idx3-ubyte", idx({16, 28, 28}, 16 * 28 * 28 - 1));
  EXPECT_TRUE(refuses_set("lenet", "has 12543 bytes after its header, which announces"));
  write_mnist();
  write("mnist/train-labels-idx1-ubyte", idx({16}, 16, 10));
  EXPECT_TRUE(refuses_set("lenet", "has label 10 at 0, expected 0 to 9"));
  write("train.bin", "");
  fs::resize_file(path("train.bin"), 50000 * 3074 - 1);  // zeros, which take no room on the disk
  EXPECT_TRUE(refuses_set("vgg16", "train.bin is truncated: it has 153699999 bytes, expected 153700000"));
}

TEST_F(DataFilesTest, SyntheticSetsAreOfTheUsualSizeAtMost) {
  const datasets::TrainTest sets = load_for("lenet", "synthetic", 1'000'000);
  EXPECT_EQ(sets.train.size(), 60000);
  EXPECT_EQ(sets.test.size(), 10000);
}

}  // namespace
}  // namespace plumb::app
