// The networks against PyTorch and TensorFlow: logits, loss and gradients for the same weights and images, in every
// layout (tests/golden/README.md tells where the numbers come from).
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "core/context.h"
#include "dispatch/recorder.h"
#include "ops/convert.h"
#include "ops/cross_entropy.h"
#include "ops/grad.h"
#include "ops/slice.h"
#include "tests/models/golden.h"
#include "tests/support/tensors.h"

namespace plumb::models {
namespace {

// Where a network has a corner and what it decided there: the outputs of its convolutions and linear layers, of which
// ReLU keeps the positive ones, and the positions of its windows' maxima.
struct Decisions final : Observer {
  std::vector<std::vector<double>> kept, positions;
  void after(const PreparedKernel& p, const Launch& l) override {
    const std::string_view kind = p.kind->name;
    const auto numbers = [&](size_t i) { return test::to_doubles(l.out[i], p.out()[i], p.policy.device); };
    if (kind == "conv2d_forward" || kind.starts_with("linear_forward")) kept.push_back(numbers(0));
    if (kind == "max_pool2d_forward") positions.push_back(numbers(1));
  }
};

// How many were decided otherwise in f32 than in f64; a sum may be on either side of 0 only if it is rounding.
int changes(const Decisions& f32, const Decisions& f64) {
  int count = 0;
  EXPECT_EQ(f32.kept.size(), f64.kept.size());
  EXPECT_EQ(f32.positions.size(), f64.positions.size());
  for (size_t k = 0; k < f64.kept.size(); ++k) {
    const double largest = std::ranges::max(f64.kept[k]);
    for (size_t i = 0; i < f64.kept[k].size(); ++i) {
      const double a = f32.kept[k][i], b = f64.kept[k][i];
      if ((a > 0) == (b > 0)) continue;
      ++count;
      EXPECT_LT(std::max(a, b), 1e-5 * largest) << "output " << i << " of layer " << k;
    }
  }
  for (size_t k = 0; k < f64.positions.size(); ++k) {
    for (size_t i = 0; i < f64.positions[k].size(); ++i) count += f32.positions[k][i] != f64.positions[k][i];
  }
  return count;
}

struct Result {
  Tensor logits;
  double loss;
  TensorList gradients;
};
Result run(const Network& network, const Tensor& x, const Tensor& y, bool train, Decisions* decisions = nullptr) {
  ForwardContext pass;
  pass.train = train;
  Result r;
  std::optional<ObserverScope> watch;
  if (decisions) watch.emplace(decisions);
  r.logits = network.forward(x, pass);
  const Tensor loss = cross_entropy(r.logits, y);
  r.loss = loss.item();
  r.gradients = grad(loss, network.trainable());
  return r;
}

// Plain loops in f64 take minutes under a sanitizer, as the large network does.
#ifdef PLUMB_SANITIZED
constexpr bool kHasTimeForF64 = false;
constexpr const char* kNetworks[] = {"vgg16"};
#else
constexpr bool kHasTimeForF64 = true;
constexpr const char* kNetworks[] = {"vgg16", "alexnet"};
#endif

class GoldenNetwork : public testing::TestWithParam<const char*> {};

// In f64 the gradients agree to the rounding of the f32 that they are returned in. In f32 a sum that is 0 but for
// rounding may fall on the other side of a ReLU, with some kernels on some machines: then, and only then, the gradient
// of one position comes or goes.
TEST_P(GoldenNetwork, AgreesWithPyTorchAndTensorFlowInEveryLayout) {
  const std::string model = GetParam();
  const GoldenFile all = GoldenFile("networks.safetensors")[model];
  const std::vector<Listed> listed = listed_of(all);
  const auto network = make_network(model);
  generate(*network, listed);
  const GoldenFile batch = all["batches"]["generated"];
  const auto expect = [&](const Result& r, double of_logits, double of_gradients) {
    for (const char* framework : {"torch", "tensorflow"}) {
      const GoldenFile want = batch[framework];
      expect_logits(want["logits"], r.logits, of_logits);
      EXPECT_NEAR(r.loss, want["loss"].number(), of_logits);
      for (size_t p = 0; p < r.gradients.size(); ++p) {
        expect_summary(want["gradients"][listed[p].name], listed[p], r.gradients[p], of_gradients);
      }
    }
  };

  Decisions f64;
  if (kHasTimeForF64) {
    SCOPED_TRACE("f64");
    const Tensor images = to(generated_images(Layout::kNhwc), DType::kF64);
    expect(run(*network, images, labels(batch), true, &f64), 1e-9, 1e-6);
  }
  for (const Layout layout : kPublicLayouts) {
    Decisions decisions;
    const Result f32 = run(*network, generated_images(layout), labels(batch), true, &decisions);
    const int changed = kHasTimeForF64 ? changes(decisions, f64) : 0;
    SCOPED_TRACE(message("f32 in {}, {} decided otherwise than in f64", layout, changed));
    EXPECT_LE(changed, 2);
    expect(f32, 1e-5, kHasTimeForF64 && !changed ? 5e-5 : 5e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(, GoldenNetwork, testing::ValuesIn(kNetworks),
                         [](const auto& model) { return std::string(model.param); });

class GoldenResNet : public testing::TestWithParam<Layout> {};

// How near a run must come: in training, gradients have another share.
struct Near {
  double eval, train, gradients;
};
void expect_agreement(const std::string& model, const std::function<Tensor()>& images, const Near& near) {
  const GoldenFile all(model + ".safetensors");
  const std::vector<Listed> listed = listed_of(all);
  const auto network = make_network(model);
  generate(*network, listed);
  const GoldenFile batch = all["batches"]["generated"];

  const Result eval = run(*network, images(), labels(batch), false);
  const Result train = run(*network, images(), labels(batch), true);

  const auto recorded = [](const GoldenFile& run, const Tensor& logits) {
    return slice(logits, Shape{0, 0}, run["logits"].shape());
  };
  expect_logits(batch["eval"]["logits"], recorded(batch["eval"], eval.logits), near.eval);
  expect_logits(batch["train"]["logits"], recorded(batch["train"], train.logits), near.train);
  EXPECT_NEAR(eval.loss, batch["eval"]["loss"].number(), near.eval * eval.loss);
  EXPECT_NEAR(train.loss, batch["train"]["loss"].number(), near.train);
  expect_statistics(batch["train"]["statistics"], listed, *network, 1e-5);
  const GoldenFile gradients = batch["train"]["gradients"];
  size_t found = 0;
  for (const Listed& entry : listed) {
    for (size_t p = 0; p < network->parameters().size(); ++p) {
      if (network->parameters()[p].name != entry.name || !gradients.contains(entry.name)) continue;
      ++found;
      expect_summary(gradients[entry.name], entry, train.gradients[p], near.gradients);
    }
  }
  EXPECT_EQ(found, gradients.names().size());
}

// A ReLU input that is zero but for rounding may fall either way, and batch norm spreads that: in f32 PyTorch itself is
// this far from its own f64, 5 % in the gradients of 50 layers.
TEST_P(GoldenResNet, AgreesWithPyTorchInBothModes) {
  expect_agreement("resnet20", [] { return generated_images(GetParam()); }, {1e-5, 1e-4, 2e-3});
}

// Fifty layers take a minute on the emulated device, and have no kernel that twenty have not.
bool on_host() { return detail::ctx.policy.device == Device{}; }

TEST_P(GoldenResNet, OfFiftyLayersAgreesWithPyTorchInBothModes) {
  if (!kHasTimeForF64 || !on_host()) GTEST_SKIP() << "on the host alone, and not under a sanitizer";
  expect_agreement("resnet50", [] { return generated_images(GetParam(), 64); }, {1e-5, 1e-3, 0.1});
}

TEST(GoldenResNet50, AgreesWithPyTorchInF64) {
  if (!kHasTimeForF64 || !on_host()) GTEST_SKIP() << "f64 takes minutes under a sanitizer, and emulated";
  expect_agreement("resnet50", [] { return to(generated_images(Layout::kNhwc, 64), DType::kF64); }, {1e-9, 1e-9, 1e-6});
}

INSTANTIATE_TEST_SUITE_P(, GoldenResNet, testing::ValuesIn(kPublicLayouts),
                         [](const auto& layout) { return std::string(to_string(layout.param)); });

}  // namespace
}  // namespace plumb::models
