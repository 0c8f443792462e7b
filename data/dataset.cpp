#include "data/dataset.h"

#include <algorithm>
#include <new>

#include "core/error.h"
#include "data/cifar.h"
#include "data/mnist.h"

namespace plumb::datasets {

const char* to_string(Split s) { return s == Split::kTrain ? "train" : "test"; }

Dataset Dataset::make(std::string_view name, Split split, const Shape& image, int64_t classes, int64_t count) {
  PLUMB_CHECK(image.rank() == 3 && std::ranges::min(image.extents()) >= 1,
              "{}: images of shape {} were asked for; use (channels, height, width), each at least 1", name, image);
  PLUMB_CHECK(classes >= 1, "{}: {} classes were asked for; use at least 1", name, classes);
  PLUMB_CHECK(count >= 0, "{}: {} images were asked for", name, count);
  Dataset d;
  d.name = name;
  d.split = split;
  d.image = image;
  d.classes = classes;
  const int64_t bytes = Shape{count, image[0], image[1], image[2]}.numel();  // refuses what overflows
  try {
    d.pixels.resize(static_cast<size_t>(bytes));
    d.labels.resize(static_cast<size_t>(count));
  } catch (const std::bad_alloc&) {
    fail("{}: out of memory for {} images of shape {}", name, count, image);
  }
  return d;
}

Dataset Dataset::first(int64_t count) const {
  PLUMB_CHECK(count <= size(), "{}: the first {} images were asked for, but the {} split has {}", name, count, split,
              size());
  Dataset d = make(name, split, image, classes, count);
  std::copy_n(pixels.begin(), d.pixels.size(), d.pixels.begin());
  std::copy_n(labels.begin(), d.labels.size(), d.labels.begin());
  d.files = files;
  return d;
}

void Dataset::check() const {
  PLUMB_CHECK(image.rank() == 3 && std::ranges::min(image.extents()) >= 1,
              "{}: images have shape {}; it must be (channels, height, width), each at least 1", name, image);
  const int64_t bytes = Shape{size(), image[0], image[1], image[2]}.numel();
  PLUMB_CHECK(static_cast<int64_t>(pixels.size()) == bytes, "{}: {} bytes of pixels do not make {} images of shape {}",
              name, pixels.size(), size(), image);
  for (int64_t i = 0; i < size(); ++i) {
    const int64_t label = labels[static_cast<size_t>(i)];
    PLUMB_CHECK(label >= 0 && label < classes, "{}: image {} has label {}, expected 0 to {}", name, i, label,
                classes - 1);
  }
}

Dataset load(std::string_view name, const std::filesystem::path& folder, Split split) {
  if (name == "cifar10") return read_cifar10(folder, split);
  if (name == "cifar100") return read_cifar100(folder, split);
  if (name == "mnist") return read_mnist(folder, split);
  fail("data set \"{}\" is unknown; use cifar10, cifar100 or mnist", name);
}

TrainTest load(std::string_view name, const std::filesystem::path& folder) {
  return {load(name, folder, Split::kTrain), load(name, folder, Split::kTest)};
}

}  // namespace plumb::datasets
