// From bytes of pixels to tensors: order of an epoch, augmentation, normalisation, layout.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "../core/spec.h"
#include "../kernels/functors/augment.h"
#include "dataset.h"

namespace plumb::datasets {

/// What is done to pixels scaled to [0, 1]: (pixel - mean) / deviation, one of each a channel. Empty: left as they are.
struct Normalization {
  std::vector<double> mean, deviation;
  /// The usual numbers for ImageNet, also used for CIFAR: (0.485, 0.456, 0.406) and (0.229, 0.224, 0.225).
  static Normalization imagenet();
};

/// Random changes of training images.
struct Augmentation {
  int64_t padding = 0;  ///< black pixels put around the image, from which a window of its size is cut; 0: no crop
  bool flip = false;    ///< mirrors every second image, on average
  /// The usual one for CIFAR: a crop after padding by 4, and flips.
  static Augmentation cifar() { return {4, true}; }
};

/// What of an image of the data set is seen in an epoch. Depends on nothing but the arguments.
functors::Window draw_crop(const Augmentation& augmentation, uint64_t seed, int64_t epoch, int64_t image);

/// Puts 0 ... order.size() - 1 into the order of an epoch. Depends on nothing but the arguments.
void shuffle(std::span<int64_t> order, uint64_t seed, int64_t epoch);

/// Writes images of one data set into tensors. Any number of threads may write at once.
class Converter {
 public:
  /// Keeps a pointer to `data`. Throws if the dtype is not f32 or bf16, the padding is not less than height and width,
  /// or the normalisation has not one finite mean and one finite positive deviation a channel.
  Converter(const Dataset& data, const Normalization& normalization, const Augmentation& augmentation, DType dtype,
            Layout layout, uint64_t seed);

  /// The spec of `count` images.
  TensorSpec spec(int64_t count) const;
  /// Writes these images of the data set, as they are in that epoch, to memory of spec(images.size()).
  void write(std::span<const int64_t> images, int64_t epoch, void* out) const;
  /// The same for a device to do: the images' bytes one after another, and what their windows are in that epoch.
  void stage(std::span<const int64_t> images, int64_t epoch, uint8_t* pixels, functors::Window* windows) const;
  /// The value of every byte in every channel: (C, 256).
  std::span<const float> table() const { return table_; }

 private:
  const Dataset* data_;
  Augmentation augmentation_;
  DType dtype_;
  Layout layout_;
  uint64_t seed_;
  std::vector<float> table_;
  std::vector<Bfloat16> table_bf16_;
};

}  // namespace plumb::datasets
