// The data set that a model is trained on.
#pragma once

#include <string>

#include "data/dataset.h"
#include "data/transform.h"

namespace plumb::app {

/// "cifar10" for alexnet and its resnets, "cifar100" for vgg16, "mnist" for lenet, "imagenet" for resnet50.
std::string data_set_of(const std::string& model);
/// Both splits of a model's data set, from a folder, or from random numbers if `source` is "synthetic". `limit` images
/// of each split, all if 0. Throws on a folder for resnet50, since nothing here reads ImageNet's files.
datasets::TrainTest load_for(const std::string& model, const std::string& source, int64_t limit);
/// One of them; the files of the other need not be there.
datasets::Dataset load_for(const std::string& model, const std::string& source, int64_t limit, datasets::Split split);

/// What a model's images are normalised by, in training as in evaluation: of the resnets ImageNet's numbers, which
/// their published weights expect; of the others nothing.
datasets::Normalization normalization_of(const std::string& model);

}  // namespace plumb::app
