#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "data/cifar.h"
#include "data/mnist.h"
#include "tests/support/compare.h"
#include "tests/support/folder.h"

namespace plumb::datasets {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<uint8_t>;

/// Files in a folder of the test's own, removed at its end.
class Readers : public ::testing::Test {
 protected:
  fs::path put(const fs::path& name, const Bytes& bytes) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return folder_ / name;
  }
  /// A file that goes on with zeros, which take no room on the disk.
  fs::path put_long(const fs::path& name, const Bytes& bytes, uintmax_t size) const {
    const fs::path path = put(name, bytes);
    fs::resize_file(path, size);
    return path;
  }
  const test::Folder own_folder_;
  const fs::path folder_ = own_folder_.path();
};

/// The sentence that `read` throws, which must name all of `parts`.
void expect_error(const std::function<void()>& read, std::initializer_list<std::string> parts) {
  const std::string text = test::error_of(read);
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

/// Labels, and pixels that count up from `first`.
Bytes record(std::initializer_list<uint8_t> labels, int first) {
  Bytes bytes(labels);
  for (int i = 0; i < 3072; ++i) bytes.push_back(static_cast<uint8_t>(first + i));
  return bytes;
}
Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
Bytes words(std::initializer_list<uint32_t> values) {
  Bytes bytes;
  for (const uint32_t v : values) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<uint8_t>(v >> shift));
  }
  return bytes;
}
constexpr uint32_t kImages = 0x803, kLabels = 0x801;

class CifarReader : public Readers {
 protected:
  /// Reads so many records of one file; as many as there are if 0.
  static std::function<void()> read(const CifarFormat& format, const fs::path& file, int64_t records) {
    return [=] { read_cifar(format, {&file, 1}, Split::kTrain, records); };
  }
};
using MnistReader = Readers;
using LoadByName = Readers;

TEST_F(CifarReader, ReadsRecordsInOrder) {
  const fs::path files[] = {put("a.bin", record({3}, 7) + record({9}, 100)), put("b.bin", record({0}, 50))};

  const Dataset set = read_cifar(kCifar10, files, Split::kTest, 0);

  EXPECT_EQ(set.name, "cifar10");
  EXPECT_EQ(set.split, Split::kTest);
  EXPECT_EQ(set.image, Shape({3, 32, 32}));
  EXPECT_EQ(set.classes, 10);
  EXPECT_EQ(set.labels, std::vector<int64_t>({3, 9, 0}));
  EXPECT_EQ(set.pixels_of(0)[0], 7);
  EXPECT_EQ(set.pixels_of(1)[1], 101);
  EXPECT_EQ(set.pixels_of(2)[3071], static_cast<uint8_t>(50 + 3071));
}

TEST_F(CifarReader, TakesTheFineLabelsOfCifar100) {
  const fs::path file = put("train.bin", record({19, 99}, 1) + record({4, 20}, 2));

  const Dataset set = read_cifar(kCifar100, {&file, 1}, Split::kTrain, 2);

  EXPECT_EQ(set.classes, 100);
  EXPECT_EQ(set.labels, std::vector<int64_t>({99, 20}));
  EXPECT_EQ(set.pixels_of(1)[0], 2);
}

TEST_F(CifarReader, RefusesWrongSizes) {
  const Bytes two = record({1}, 0) + record({2}, 0);
  const fs::path cut = put("cut.bin", Bytes(two.begin(), two.end() - 1)), one_more = put("more.bin", two + Bytes{0});
  const fs::path good = put("good.bin", two), empty = put("empty.bin", {});

  expect_error(read(kCifar10, cut, 2), {"cut.bin is truncated", "6145 bytes", "expected 6146", "2 records of 3073"});
  expect_error(read(kCifar10, one_more, 2), {"more.bin is too long", "6147 bytes", "expected 6146"});
  expect_error(read(kCifar10, good, 3), {"good.bin is truncated", "expected 9219"});
  expect_error(read(kCifar10, cut, 0), {"cut.bin", "6145 bytes", "whole records of 3073"});
  expect_error(read(kCifar10, empty, 0), {"empty.bin", "0 bytes"});
}

TEST_F(CifarReader, RefusesLabelsOutOfRange) {
  const fs::path ten = put("ten.bin", record({9}, 0) + record({10}, 0));
  const fs::path fine = put("fine.bin", record({19, 100}, 0)), coarse = put("coarse.bin", record({20, 99}, 0));

  expect_error(read(kCifar10, ten, 0), {"ten.bin", "label 10", "record 1", "expected 0 to 9"});
  expect_error(read(kCifar100, fine, 0), {"fine.bin", "label 100", "0 to 99"});
  expect_error(read(kCifar100, coarse, 0), {"coarse.bin", "coarse label 20", "0 to 19"});
}

TEST_F(CifarReader, NamesTheFileThatIsMissingOrIsNone) {
  for (int i : {1, 2, 4, 5}) put_long(message("data_batch_{}.bin", i), {}, 30730000);
  fs::create_directories(folder_ / "test_batch.bin");

  expect_error([&] { read_cifar10(folder_, Split::kTrain); }, {"data_batch_3.bin", "missing"});
  expect_error([&] { read_cifar10(folder_, Split::kTest); }, {"test_batch.bin", "is a folder, not a file"});
}

TEST_F(LoadByName, FindsCifar10InItsUsualFolder) {
  for (int i = 1; i <= 5; ++i) {
    const auto label = static_cast<uint8_t>(i);
    put_long(message("cifar-10-batches-bin/data_batch_{}.bin", i), record({label}, i), 30730000);
  }
  put_long("cifar-10-batches-bin/test_batch.bin", record({8}, 0), 30730000);

  const auto [train, test] = load("cifar10", folder_);

  ASSERT_EQ(train.size(), 50000);
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(train.labels[static_cast<size_t>(i * 10000)], i + 1);
    EXPECT_EQ(train.pixels_of(i * 10000)[1], i + 2);
  }
  ASSERT_EQ(test.size(), 10000);
  EXPECT_EQ(test.labels[0], 8);
  EXPECT_EQ(load("cifar10", folder_ / "cifar-10-batches-bin", Split::kTest).pixels, test.pixels);
}

TEST_F(LoadByName, FindsCifar100InItsUsualFolder) {
  put_long("cifar-100-binary/train.bin", record({1, 2}, 3), uintmax_t{50000} * 3074);
  put_long("cifar-100-binary/test.bin", record({4, 5}, 6), uintmax_t{10000} * 3074);

  const auto [train, test] = load("cifar100", folder_);

  EXPECT_EQ(train.size(), 50000);
  EXPECT_EQ(train.labels[0], 2);
  EXPECT_EQ(test.size(), 10000);
  EXPECT_EQ(test.labels[0], 5);
}

TEST_F(LoadByName, SaysWhereItLooked) {
  expect_error([&] { load("cifar10", folder_); }, {"data_batch_1.bin", folder_.string(), "cifar-10-batches-bin"});
  expect_error([&] { load("cifar100", folder_); }, {"train.bin", folder_.string(), "cifar-100-binary"});
  expect_error([&] { load("mnist", folder_, Split::kTest); }, {"t10k-images-idx3-ubyte", folder_.string()});
  expect_error([&] { load("mnist", folder_ / "no"); }, {"/no is not a folder"});
  expect_error([&] { load("imagenet", folder_); }, {"imagenet", "cifar10, cifar100 or mnist"});
}

TEST_F(MnistReader, ReadsImagesAndLabels) {
  Bytes pixels(2 * 28 * 28, 3);
  pixels.front() = 1, pixels.back() = 255;
  for (const std::string in : {"", "mnist/"}) {
    fs::remove_all(folder_);
    put(in + "train-images-idx3-ubyte", words({kImages, 2, 28, 28}) + pixels);
    put(in + "train-labels-idx1-ubyte", words({kLabels, 2}) + Bytes{9, 0});

    const Dataset set = load("mnist", folder_, Split::kTrain);

    EXPECT_EQ(set.image, Shape({1, 28, 28}));
    EXPECT_EQ(set.labels, std::vector<int64_t>({9, 0}));
    EXPECT_EQ(set.pixels, pixels);
  }
}

TEST_F(MnistReader, RefusesMalformedImages) {
  const fs::path labels = put("labels", words({kLabels, 1}) + Bytes{1});
  const auto read = [&](const Bytes& bytes) {
    const fs::path images = put("images", bytes);
    return [=] { read_idx("mnist", images, labels, 10, Split::kTrain); };
  };

  expect_error(read({0, 0, 8}), {"images", "3 bytes", "16 of its header"});
  expect_error(read(words({kLabels, 1, 1, 1}) + Bytes{0}), {"images", "magic number 2049", "expected 2051"});
  expect_error(read(words({0x1f8b0800, 1, 1, 1}) + Bytes{0}), {"images", "gunzip"});
  expect_error(read(words({kImages, 1, 2, 2}) + Bytes(3)), {"images has 3 bytes", "1 x 2 x 2"});
  expect_error(read(words({kImages, 1, 2, 2}) + Bytes(5)), {"images has 5 bytes", "1 x 2 x 2"});
  expect_error(read(words({kImages, 1, 0, 2})), {"images has 0 bytes", "1 x 0 x 2"});
  expect_error(read(words({kImages, 0, 28, 28})), {"images holds no images"});
}

TEST_F(MnistReader, RefusesTheImagesOfAnotherSet) {
  put("t10k-images-idx3-ubyte", words({kImages, 1, 2, 3}) + Bytes(6));
  put("t10k-labels-idx1-ubyte", words({kLabels, 1}) + Bytes{1});
  expect_error([&] { read_mnist(folder_, Split::kTest); },
               {"t10k-images-idx3-ubyte has images of 2 x 3", "expected 28 x 28"});
}

TEST(DatasetWithoutAName, HasASentenceAllTheSame) {
  Dataset set;
  set.image = {1, 1, 1};
  set.pixels = {0}, set.labels = {3};
  expect_error([&] { set.check(); }, {"the data set: image 0 has label 3"});
}

TEST_F(MnistReader, RefusesHeadersThatOverflow) {
  const fs::path labels = put("labels", words({kLabels, 1}) + Bytes{1});
  const fs::path huge = put("huge", words({kImages, 0xffffffff, 0xffffffff, 0xffffffff}) + Bytes(4));
  // Products of 2^64, which wraps to 0, of 2^64 + 4, which wraps to what is there, and of 2^63, which is negative.
  const fs::path wraps = put("wraps", words({kImages, 1u << 22, 1u << 21, 1u << 21}));
  const fs::path fits = put("fits", words({kImages, 4, 2147418113, 2147549185}) + Bytes(4));
  const fs::path negative = put("negative", words({kImages, 1u << 31, 1u << 31, 2}) + Bytes(8));
  const fs::path many = put("many", words({kLabels, 0xffffffff}) + Bytes{1});
  const fs::path image = put("image", words({kImages, 1, 1, 1}) + Bytes{1});

  for (const fs::path& images : {huge, wraps, fits, negative}) {
    expect_error([&] { read_idx("mnist", images, labels, 10, Split::kTrain); }, {images.string(), "announces"});
  }
  expect_error([&] { read_idx("mnist", image, many, 10, Split::kTrain); }, {"many has 1 bytes", "4294967295"});
}

TEST_F(MnistReader, RefusesLabelsThatDoNotFit) {
  const fs::path images = put("images", words({kImages, 2, 1, 1}) + Bytes{1, 2});
  const fs::path three = put("three", words({kLabels, 3}) + Bytes{1, 2, 3});
  const fs::path ten = put("ten", words({kLabels, 2}) + Bytes{1, 10});
  const fs::path more = put("more", words({kLabels, 2}) + Bytes{1, 2, 3}), none = put("none", words({kLabels, 0}));
  const auto read = [&](const fs::path& labels) {
    return [=] { read_idx("mnist", images, labels, 10, Split::kTrain); };
  };

  expect_error(read(three), {"2 images", "three has 3 labels"});
  expect_error(read(ten), {"ten has label 10 at 1", "0 to 9"});
  expect_error(read(more), {"more has 3 bytes after its header"});
  expect_error(read(none), {"none holds no labels"});
}

}  // namespace
}  // namespace plumb::datasets
