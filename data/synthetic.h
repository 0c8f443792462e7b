// Images made of random numbers that a network can learn, for runs without files.
#pragma once

#include "dataset.h"

namespace plumb::datasets {

/// Which synthetic set. synthetic() throws on sizes below 1 and on too many classes.
struct SyntheticSpec {
  Shape image{3, 32, 32};  ///< (C, H, W)
  int64_t classes = 10;
  int64_t count = 50000;
  uint64_t seed = 0;
  Split split = Split::kTrain;  ///< splits of one seed share the classes and no image
};

/// Images of a set that is the same on every machine. A class is a smooth random pattern; an image is the pattern of a
/// random class, shifted by up to an eighth of its size, plus uniform noise. An image does not depend on the count.
Dataset synthetic(const SyntheticSpec& spec);
/// The number of images in a split of cifar10, cifar100 or mnist; of imagenet, whose pixels would take 190 GB, 2000 for
/// training and 500 for the test. Throws on another name.
int64_t usual_count(std::string_view name, Split split);
/// A synthetic set with the shape, the classes and (where `count` is 0) the usual count of cifar10, cifar100, mnist or
/// imagenet, whose images are 224 pixels wide and high, as they are cut for networks.
Dataset synthetic_like(std::string_view name, Split split, uint64_t seed, int64_t count = 0);

}  // namespace plumb::datasets
