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
  // A file of zeros that takes no room on the disk: black images of class 0.
  void write_zeros(const std::string& name, uintmax_t bytes) const {
    write(name, "");
    fs::resize_file(path(name), bytes);
  }
  testing::AssertionResult refuses_set(const std::string& model, const std::string& part) const {
    return refuses("train " + model + " --layout nchw --batch 8 --limit 8 --epochs 1 --data .", part);
  }
};

constexpr uintmax_t kCifar10Bytes = 10000 * 3073, kCifar100Record = 3074;

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
  for (const char* file : {"train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    write_mnist();
    fs::remove(path("mnist") / file);
    EXPECT_TRUE(refuses_set("lenet", file));
  }
}

TEST_F(DataFilesTest, RefusesMnistFilesThatAreNotWhole) {
  const struct {
    const char* file;
    Bytes bytes;
    const char* part;
  } cases[] = {
      {"train-images", "", "has 0 bytes, less than the 16 of its header"},
      {"train-images", idx({16, 28, 28}, 16 * 28 * 28 - 1), "has 12543 bytes after its header, which announces"},
      {"train-images", idx({16, 28, 28}, 16 * 28 * 28 + 1), "has 12545 bytes after its header, which announces"},
      {"train-images", idx({0, 28, 28}, 0), "train-images-idx3-ubyte holds no images"},
      {"train-images", idx({~0u, ~0u, ~0u}, 8), "which announces 4294967295 x 4294967295 x 4294967295"},
      {"train-images", idx({16, 27, 28}, 16 * 27 * 28),
       "train-images-idx3-ubyte has images of 27 x 28, expected 28 x 28"},
      {"train-images", idx({16}, 16), "starts with the magic number 2049, expected 2051; it is another kind of file"},
      {"train-images", "\x1f\x8b" + Bytes(100, 0), "it is compressed, unpack it with gunzip"},
      {"train-labels", idx({15}, 15), "has 16 images, but"},
      {"train-labels", idx({16}, 16, 10), "has label 10 at 0, expected 0 to 9"},
      {"t10k-images", idx({8, 28, 28}, 0), "has 0 bytes after its header"},
      {"train-labels", idx({0}, 0), "train-labels-idx1-ubyte holds no labels"},
      {"t10k-labels", idx({8}, 9), "has 9 bytes after its header"},
  };
  for (const auto& c : cases) {
    write_mnist();
    const std::string file = c.file;
    write("mnist/" + file + (file.ends_with("images") ? "-idx3-ubyte" : "-idx1-ubyte"), c.bytes);
    EXPECT_TRUE(refuses_set("lenet", c.part));
  }
}

TEST_F(DataFilesTest, RefusesCifarFilesThatAreNotWhole) {
  for (const char i : {'1', '2', '3', '4', '5'}) write_zeros("data_batch_" + std::string(1, i) + ".bin", kCifar10Bytes);
  write_zeros("data_batch_3.bin", kCifar10Bytes - 1);
  EXPECT_TRUE(refuses_set("resnet20", "data_batch_3.bin is truncated: it has 30729999 bytes, expected 30730000"));
  write_zeros("data_batch_3.bin", kCifar10Bytes + 1);
  EXPECT_TRUE(refuses_set("resnet20", "data_batch_3.bin is too long: it has 30730001 bytes"));
  fs::remove(path("data_batch_3.bin"));
  EXPECT_TRUE(refuses_set("resnet20", "data_batch_3.bin is missing"));
  write("data_batch_1.bin", Bytes(1, 10));
  fs::resize_file(path("data_batch_1.bin"), kCifar10Bytes);
  write_zeros("data_batch_3.bin", kCifar10Bytes);
  EXPECT_TRUE(refuses_set("resnet20", "data_batch_1.bin has label 10 in record 0, expected 0 to 9"));

  write_zeros("train.bin", 50000 * kCifar100Record - 1);
  EXPECT_TRUE(refuses_set("vgg16", "train.bin is truncated"));
  write_zeros("train.bin", 50000 * kCifar100Record + 1);
  EXPECT_TRUE(refuses_set("vgg16", "train.bin is too long"));
  write("train.bin", Bytes(1, 0) + Bytes(1, 100));
  fs::resize_file(path("train.bin"), 50000 * kCifar100Record);
  EXPECT_TRUE(refuses_set("vgg16", "train.bin has label 100 in record 0, expected 0 to 99"));
}

TEST_F(DataFilesTest, SyntheticSetsAreOfTheUsualSizeAtMost) {
  const datasets::TrainTest sets = load_for("lenet", "synthetic", 1'000'000);
  EXPECT_EQ(sets.train.size(), 60000);
  EXPECT_EQ(sets.test.size(), 10000);
}

}  // namespace
}  // namespace plumb::app
