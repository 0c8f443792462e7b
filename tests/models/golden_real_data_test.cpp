// The networks against PyTorch and TensorFlow on real CIFAR images.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "data/cifar.h"
#include "ops/convert.h"
#include "ops/cross_entropy.h"
#include "ops/grad.h"
#include "tests/models/golden.h"

namespace plumb::models {
namespace {

uint64_t fnv1a64(std::span<const uint8_t> bytes) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (const uint8_t b : bytes) h = (h ^ b) * 0x100000001b3ull;
  return h;
}

// The images of a batch, wherever a file has them: CIFAR's binary files go round in more than one order.
Tensor images_of(const GoldenFile& batch, const datasets::Dataset& set) {
  const std::vector<std::string> hashes = test::words_of(batch["fnv1a64"].text());
  std::map<uint64_t, int64_t> where;
  for (int64_t i = 0; i < set.size(); ++i) where[fnv1a64(set.pixels_of(i))] = i;
  Tensor x = Tensor::empty(TensorSpec(Shape{4, 3, 32, 32}));
  auto out = x.mutable_data<float>().begin();
  for (size_t n = 0; n < 4; ++n) {
    const auto found = where.find(std::stoull(hashes.at(n), nullptr, 16));
    PLUMB_CHECK(found != where.end(), "{} has no image with the hash {}", set.name, hashes[n]);
    EXPECT_EQ(set.labels[static_cast<size_t>(found->second)], batch["labels"].numbers()[n]);
    out = std::ranges::transform(set.pixels_of(found->second), out, [](uint8_t b) {
            return static_cast<float>(b) / 255.0f;
          }).out;
  }
  return x;
}

class GoldenRealData : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("PLUMB_DATA");
    if (!folder || !*folder) GTEST_SKIP() << "PLUMB_DATA does not name the folder of the data sets";
    const std::string model = GetParam();
    const GoldenFile all =
        model == "resnet20" ? GoldenFile("resnet20.safetensors") : GoldenFile("networks.safetensors")[model];
    listed_ = listed_of(all);
    batch_.emplace(all["batches"]["cifar"]);
    images_ = images_of(*batch_, model == "vgg16" ? datasets::read_cifar100(folder, datasets::Split::kTest)
                                                  : datasets::read_cifar10(folder, datasets::Split::kTest));
    network_ = make_network(model);
    generate(*network_, listed_);
  }
  // Logits and loss must be within `tolerance` of those of a run.
  void expect(const GoldenFile& run, const Tensor& logits, double tolerance) const {
    expect_logits(run["logits"], logits, tolerance);
    const double loss = run["loss"].number();
    EXPECT_NEAR(cross_entropy(logits, labels(*batch_)).item(), loss, tolerance * loss);
  }

  std::optional<GoldenFile> batch_;
  std::vector<Listed> listed_;
  Tensor images_;
  std::unique_ptr<Network> network_;
};

class GoldenNetworkRealData : public GoldenRealData {};

TEST_P(GoldenNetworkRealData, LogitsAndLossAgreeWithPyTorchAndTensorFlow) {
  const NoGrad untaped;
  for (const Layout layout : kPublicLayouts) {
    const Tensor logits = network_->forward(to(images_, layout), ForwardContext{});
    for (const char* framework : {"torch", "tensorflow"}) {
      SCOPED_TRACE(message("{} {}", framework, layout));
      expect((*batch_)[framework], logits, 1e-5);
    }
  }
}

// In f32 a maximum of two values that are nearly equal may fall the other way, and its gradient with it.
TEST_P(GoldenNetworkRealData, GradientsInF64AgreeWithPyTorchAndTensorFlow) {
#ifdef PLUMB_SANITIZED
  GTEST_SKIP() << "f64 takes minutes under a sanitizer";
#endif
  const Tensor logits = network_->forward(to(images_, DType::kF64), ForwardContext{.train = true});
  const TensorList gradients = grad(cross_entropy(logits, labels(*batch_)), network_->trainable());
  for (const char* framework : {"torch", "tensorflow"}) {
    SCOPED_TRACE(framework);
    const GoldenFile run = (*batch_)[framework];
    expect(run, logits, 1e-9);
    for (size_t p = 0; p < gradients.size(); ++p) {
      expect_summary(run["gradients"][listed_[p].name], listed_[p], gradients[p], 1e-6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, GoldenNetworkRealData, testing::Values("alexnet", "vgg16"),
                         [](const auto& model) { return std::string(model.param); });

class GoldenResNetRealData : public GoldenRealData {};

TEST_P(GoldenResNetRealData, LogitsLossAndStatisticsAgreeWithPyTorch) {
  const NoGrad untaped;
  for (const Layout layout : kPublicLayouts) {
    SCOPED_TRACE(to_string(layout));
    generate(*network_, listed_);  // training writes the statistics
    const Tensor x = to(images_, layout);
    expect((*batch_)["eval"], network_->forward(x, ForwardContext{}), 1e-5);
    expect((*batch_)["train"], network_->forward(x, ForwardContext{.train = true}), 1e-4);
    expect_statistics((*batch_)["train"]["statistics"], listed_, *network_, 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(, GoldenResNetRealData, testing::Values("resnet20"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace plumb::models
