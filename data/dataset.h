// Labelled images in memory, and the data sets that can be loaded by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../core/shape.h"

namespace plumb::datasets {

/// The part of a data set that is trained on, or the part that is kept for the test.
enum class Split : uint8_t { kTrain, kTest };
/// "train" or "test".
const char* to_string(Split s);

/// One split of a labelled image set. Pixels are bytes in the order (N, C, H, W), as in the files.
struct Dataset {
  std::string name = "the data set";  ///< in messages
  Split split = Split::kTrain;
  Shape image;          ///< (C, H, W)
  int64_t classes = 0;  ///< labels are 0 ... classes - 1
  std::vector<uint8_t> pixels;
  std::vector<int64_t> labels;
  std::vector<std::string> files;  ///< that it was read from

  /// A set of `count` black images with label 0, to be filled. Throws on an image that is not (C, H, W) with C, H and W
  /// at least 1, on a negative count, on no class, and when the memory does not suffice.
  static Dataset make(std::string_view name, Split split, const Shape& image, int64_t classes, int64_t count);

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  int64_t channels() const { return image[0]; }
  int64_t height() const { return image[1]; }
  int64_t width() const { return image[2]; }
  /// The C * H * W bytes of image i.
  std::span<const uint8_t> pixels_of(int64_t i) const {
    const auto bytes = static_cast<size_t>(image.numel());
    return {pixels.data() + static_cast<size_t>(i) * bytes, bytes};
  }
  std::span<uint8_t> pixels_of(int64_t i) {
    const auto bytes = static_cast<size_t>(image.numel());
    return {pixels.data() + static_cast<size_t>(i) * bytes, bytes};
  }
  /// A copy of the first `count` images; throws if there are fewer.
  Dataset first(int64_t count) const;
  /// Throws unless the sizes fit together and every label is in 0 ... classes - 1.
  void check() const;
};

/// Both splits of a set.
struct TrainTest {
  Dataset train, test;
};

/// One split of cifar10, cifar100 (fine labels) or mnist from `folder` or the usual folder in it (cifar-10-batches-bin,
/// cifar-100-binary, mnist). Throws on an unknown name and on files that are missing, of the wrong size or malformed.
Dataset load(std::string_view name, const std::filesystem::path& folder, Split split);
/// Both splits of it.
TrainTest load(std::string_view name, const std::filesystem::path& folder);

}  // namespace plumb::datasets
