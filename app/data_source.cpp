#include "app/data_source.h"

#include <algorithm>

#include "core/error.h"
#include "data/synthetic.h"

namespace plumb::app {
namespace {

datasets::Dataset limited(datasets::Dataset d, int64_t limit) {
  return limit && limit < d.size() ? d.first(limit) : std::move(d);
}

}  // namespace

std::string data_set_of(const std::string& model) {
  if (model == "vgg" || model == "vgg16") return "cifar100";
  if (model == "lenet") return "mnist";
  if (model == "resnet50") return "imagenet";
  return "cifar10";
}

datasets::Normalization normalization_of(const std::string& model) {
  return model.starts_with("resnet") ? datasets::Normalization::imagenet() : datasets::Normalization{};
}

datasets::Dataset load_for(const std::string& model, const std::string& source, int64_t limit, datasets::Split split) {
  PLUMB_CHECK(limit >= 0, "limit: {} images were asked for; use a positive number, or 0 for all", limit);
  const std::string name = data_set_of(model);
  if (source == "synthetic") {
    constexpr uint64_t kSeed = 0;  // the set is the same in every run; --seed is of the training
    return datasets::synthetic_like(name, split, kSeed, std::min(limit, datasets::usual_count(name, split)));
  }
  PLUMB_CHECK(name != "imagenet", "--data {}: ImageNet's files are not read; give --data synthetic for {}", source,
              model);
  return limited(datasets::load(name, source, split), limit);
}

datasets::TrainTest load_for(const std::string& model, const std::string& source, int64_t limit) {
  return {load_for(model, source, limit, datasets::Split::kTrain),
          load_for(model, source, limit, datasets::Split::kTest)};
}

}  // namespace plumb::app
