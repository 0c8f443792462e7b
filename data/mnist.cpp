#include "data/mnist.h"

#include <array>
#include <string>

#include "core/error.h"
#include "data/file.h"

namespace plumb::datasets {
namespace {

// The extents in the header of an idx file of bytes with that many dimensions, in a file of exactly the size they ask
// for.
template <size_t Rank>
std::array<int64_t, Rank> read_extents(File& file) {
  constexpr int64_t kHeaderBytes = 4 + 4 * Rank;
  constexpr uint8_t kBytes = 8;  // the format's code for unsigned bytes
  PLUMB_CHECK(file.size() >= kHeaderBytes,
              "{}: {} has {} bytes, less than the {} of its header; download and unpack the data set again", file.set(),
              file.path(), file.size(), kHeaderBytes);
  std::array<uint8_t, kHeaderBytes> header;
  file.read(header);
  const auto word = [&](size_t i) {
    uint32_t w = 0;
    for (size_t j = 0; j < 4; ++j) w = w << 8 | header[4 * i + j];
    return w;
  };
  constexpr uint32_t kMagic = kBytes << 8 | Rank;
  PLUMB_CHECK(word(0) == kMagic, "{}: {} starts with the magic number {}, expected {}; {}", file.set(), file.path(),
              word(0), kMagic,
              word(0) >> 16 == 0x1f8b ? "it is compressed, unpack it with gunzip" : "it is another kind of file");
  std::array<int64_t, Rank> extents;
  int64_t bytes = 1;
  bool overflow = false;
  std::string text;
  for (size_t i = 0; i < Rank; ++i) {
    extents[i] = word(i + 1);
    overflow |= __builtin_mul_overflow(bytes, extents[i], &bytes);
    text += (i ? " x " : "") + std::to_string(extents[i]);
  }
  const int64_t found = file.size() - kHeaderBytes;
  PLUMB_CHECK(extents[0] > 0, "{}: {} holds no {}; unpack the data set again", file.set(), file.path(),
              Rank == 1 ? "labels" : "images");
  PLUMB_CHECK(!overflow && bytes > 0 && bytes == found,
              "{}: {} has {} bytes after its header, which announces {}; download and unpack the data set again",
              file.set(), file.path(), found, text);
  return extents;
}

}  // namespace

Dataset read_idx(std::string_view name, const std::filesystem::path& images, const std::filesystem::path& labels,
                 int64_t classes, Split split) {
  File image_file(name, images), label_file(name, labels);
  const auto [count, height, width] = read_extents<3>(image_file);
  const auto [label_count] = read_extents<1>(label_file);
  PLUMB_CHECK(count == label_count,
              "{}: {} has {} images, but {} has {} labels; take both files from the same data set", name,
              image_file.path(), count, label_file.path(), label_count);
  Dataset set = Dataset::make(name, split, {1, height, width}, classes, count);
  set.files = {image_file.path(), label_file.path()};
  image_file.read(set.pixels);
  std::vector<uint8_t> bytes(set.labels.size());
  label_file.read(bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    PLUMB_CHECK(bytes[i] < classes,
                "{}: {} has label {} at {}, expected 0 to {}; the file is damaged or of another data set", name,
                label_file.path(), static_cast<int>(bytes[i]), i, classes - 1);
    set.labels[i] = bytes[i];
  }
  return set;
}

Dataset read_mnist(const std::filesystem::path& folder, Split split) {
  const std::string start = split == Split::kTrain ? "train" : "t10k";
  const auto in = find_folder("mnist", folder, "mnist", start + "-images-idx3-ubyte");
  const auto images = in / (start + "-images-idx3-ubyte");
  Dataset set = read_idx("mnist", images, in / (start + "-labels-idx1-ubyte"), 10, split);
  PLUMB_CHECK(set.height() == 28 && set.width() == 28,
              "mnist: {} has images of {} x {}, expected 28 x 28; it is of another data set", images.string(),
              set.height(), set.width());
  return set;
}

}  // namespace plumb::datasets
