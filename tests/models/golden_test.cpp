// The networks against PyTorch and TensorFlow: logits, loss and gradients for the same weights and images, in every
// layout (tests/golden/README.md tells where the numbers come from).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/recorder.h"
#include "models/network.h"
#include "ops/convert.h"
#include "ops/cross_entropy.h"
#include "ops/grad.h"
#include "tests/support/tensors.h"

namespace plumb::models {
namespace {

using Json = nlohmann::json;

Json golden(const std::string& file) {
  std::ifstream in(std::string(PLUMB_SOURCE_DIR) + "/tests/golden/" + file);
  return Json::parse(in);
}

uint64_t hash(uint64_t stream, uint64_t i) {  // splitmix64
  uint64_t z = (stream << 32) + i + 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}
float unit(uint64_t stream, uint64_t i) { return static_cast<float>(hash(stream, i) >> 40) * 0x1p-24f; }

bool ends_with(const std::string& s, const char* end) { return s.ends_with(end); }

void generate(Tensor t, const std::string& name, uint64_t stream) {
  const auto out = t.mutable_data<float>();
  const double fan_in = static_cast<double>(t.numel()) / static_cast<double>(t.shape()[0]);
  const auto bound = static_cast<float>(std::sqrt(6.0 / fan_in));
  const bool around_one = t.rank() == 1 && (ends_with(name, "running_var") ||
                                            (name.find("bn") != std::string::npos && ends_with(name, ".weight")));
  for (size_t i = 0; i < out.size(); ++i) {
    const float u = unit(stream, i);
    out[i] = t.rank() > 1 ? (2 * u - 1) * bound : (around_one ? 0.5f + u : (2 * u - 1) * 0.01f);
  }
}

constexpr uint64_t kImages = 1 << 20;

Tensor images(Layout layout) {
  Tensor x = Tensor::empty(TensorSpec(Shape{4, 3, 32, 32}));
  const auto out = x.mutable_data<float>();
  for (size_t i = 0; i < out.size(); ++i) out[i] = unit(kImages, i);
  return to(x, layout);
}

Tensor labels(const Json& batch) {
  const auto list = batch["labels"].get<std::vector<int64_t>>();
  return Tensor::from(std::span<const int64_t>(list), TensorSpec(Shape{4}, DType::kI64));
}

// Where a network has a corner and what it decided there: the outputs of its convolutions and linear layers, of which
// ReLU keeps the positive ones, and the positions of its windows' maxima.
struct Decisions final : Observer {
  std::vector<std::vector<double>> kept, positions;
  void after(const Prepared& p, const Launch& l) override {
    const std::string_view kind = p.kind->name;
    if (kind == "conv2d_forward" || kind == "linear_forward") kept.push_back(test::to_doubles(l.out[0], p.out()[0]));
    if (kind == "max_pool2d_forward") positions.push_back(test::to_doubles(l.out[1], p.out()[1]));
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
  Decisions decisions{};
};
Result run(const Network& network, const Tensor& x, const Tensor& y, bool train) {
  Pass pass;
  pass.train = train;
  Result r;
  const Scoped<Observer*> watch(ctx.observer, &r.decisions);
  r.logits = network.forward(x, pass);
  const Tensor loss = cross_entropy(r.logits, y);
  r.loss = loss.item();
  r.gradients = grad(loss, network.trainable());
  return r;
}

void expect_logits(const Json& want, const Tensor& got, double tolerance) {
  const auto values = want["data"].get<std::vector<double>>();
  const std::vector<double> have = test::to_doubles(got);
  ASSERT_EQ(values.size(), have.size());
  double largest = 0;
  for (const double v : values) largest = std::max(largest, std::abs(v));
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(have[i], values[i], tolerance * largest) << "logit " << i;
}

void expect_gradient(const std::string& name, const Json& want, const Json& indices, const Tensor& got,
                     double tolerance) {
  const auto have = got.data<float>();
  double squares = 0;
  for (const float v : have) squares += static_cast<double>(v) * v;
  const double norm = want["norm"], rms = norm / std::sqrt(static_cast<double>(have.size()));
  EXPECT_NEAR(std::sqrt(squares), norm, tolerance * norm) << name;
  for (size_t i = 0; i < indices.size(); ++i) {
    EXPECT_NEAR(have[indices[i].get<size_t>()], want["samples"][i].get<double>(), 10 * tolerance * rms + 1e-12)
        << name << " at " << indices[i];
  }
}

using Case = std::tuple<const char*, Layout>;
std::string name_of(const testing::TestParamInfo<Case>& info) {
  return std::string(std::get<0>(info.param)) + "_" + to_string(std::get<1>(info.param));
}

class GoldenNetwork : public testing::TestWithParam<Case> {};

// Plain loops in f64 take minutes under a sanitizer.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasTimeForF64 = false;
#else
constexpr bool kHasTimeForF64 = true;
#endif

// In f64 the gradients agree to the rounding of the f32 that they are returned in. In f32 a sum that is 0 but for
// rounding may fall on the other side of a ReLU, with some kernels on some machines: then, and only then, the gradient
// of one position comes or goes.
TEST_P(GoldenNetwork, AgreesWithPyTorchAndTensorFlow) {
  const auto [model, layout] = GetParam();
  const Json all = golden("networks.json")[model];
  const auto network = make_network(model);
  const auto& parameters = network->parameters();
  ASSERT_EQ(parameters.size(), all["parameters"].size());
  for (size_t p = 0; p < parameters.size(); ++p) generate(parameters[p].tensor, parameters[p].name, p);
  const Json& batch = all["batches"]["generated"];
  const auto expect = [&](const Result& r, double of_logits, double of_gradients) {
    for (const char* framework : {"torch", "tensorflow"}) {
      const Json& want = batch[framework];
      expect_logits(want["logits"], r.logits, of_logits);
      EXPECT_NEAR(r.loss, want["loss"].get<double>(), of_logits);
      for (size_t p = 0; p < parameters.size(); ++p) {
        const Json& listed = all["parameters"][p];
        expect_gradient(parameters[p].name, want["gradients"][listed["name"].get<std::string>()], listed["indices"],
                        r.gradients[p], of_gradients);
      }
    }
  };

  const Result f32 = run(*network, images(layout), labels(batch), true);
  int changed = 0;
  if (kHasTimeForF64) {
    SCOPED_TRACE("f64");
    const Result f64 = run(*network, to(images(layout), DType::kF64), labels(batch), true);
    expect(f64, 1e-9, 1e-6);
    changed = changes(f32.decisions, f64.decisions);
    EXPECT_LE(changed, 2);
  }
  SCOPED_TRACE(message("f32, {} decided otherwise than in f64", changed));
  expect(f32, 1e-5, kHasTimeForF64 && !changed ? 5e-5 : 5e-3);
}

INSTANTIATE_TEST_SUITE_P(Layouts, GoldenNetwork,
                         testing::Combine(testing::Values("alexnet", "vgg16"), testing::ValuesIn(kPublicLayouts)),
                         name_of);

class GoldenResNet : public testing::TestWithParam<Case> {};

TEST_P(GoldenResNet, AgreesWithPyTorchInBothModes) {
  const auto [model, layout] = GetParam();
  const Json all = golden("resnet20.json");
  const auto network = make_network(model);
  std::map<std::string, Tensor> by_name;
  for (const auto* list : {&network->parameters(), &network->buffers()}) {
    for (const auto& t : *list) by_name[t.name] = t.tensor;
  }
  for (const Json& listed : all["parameters"]) {
    const std::string name = listed["name"];
    ASSERT_TRUE(by_name.contains(name)) << name;
    generate(by_name[name], name, listed["p"].get<uint64_t>());
    EXPECT_EQ(by_name[name].data<float>()[0], listed["first"][0].get<float>()) << name;
  }
  const Json& batch = all["batches"]["generated"];

  const Result eval = run(*network, images(layout), labels(batch), false);
  const Result train = run(*network, images(layout), labels(batch), true);

  expect_logits(batch["eval"]["logits"], eval.logits, 1e-5);
  expect_logits(batch["train"]["logits"], train.logits, 1e-4);
  EXPECT_NEAR(eval.loss, batch["eval"]["loss"].get<double>(), 1e-5 * eval.loss);
  EXPECT_NEAR(train.loss, batch["train"]["loss"].get<double>(), 1e-4);
  for (const Json& listed : all["parameters"]) {
    const std::string name = listed["name"];
    if (!batch["train"]["gradients"].contains(name)) continue;
    for (size_t p = 0; p < network->parameters().size(); ++p) {
      if (network->parameters()[p].name != name) continue;
      // A ReLU input that is zero but for rounding may fall either way, and batch norm spreads that: in f32 PyTorch
      // itself is this far from its own f64.
      expect_gradient(name, batch["train"]["gradients"][name], listed["indices"], train.gradients[p], 2e-3);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, GoldenResNet,
                         testing::Combine(testing::Values("resnet20"), testing::ValuesIn(kPublicLayouts)), name_of);

TEST(NetworkTest, ParameterCountsAreThoseOfTheirPapers) {
  EXPECT_EQ(make_network("alexnet")->parameter_count(), 78330250);
  EXPECT_EQ(make_network("vgg16")->parameter_count(), 8735652);
  EXPECT_EQ(make_network("vgg")->name(), "vgg16");
  EXPECT_EQ(make_network("lenet")->parameter_count(), 61706);
  EXPECT_EQ(make_network("resnet20")->parameter_count(), 269722);
  EXPECT_EQ(make_network("resnet56")->parameter_count(), 853018);
  EXPECT_THROW(make_network("resnet18"), Error);
}

TEST(NetworkTest, TableListsEveryParameter) {
  for (const std::string& name : network_names()) {
    const auto network = make_network(name);
    int64_t listed = 0;
    for (const auto& row : network->table()) listed += row.parameters;
    EXPECT_EQ(listed, network->parameter_count()) << name;
  }
}

}  // namespace
}  // namespace plumb::models
