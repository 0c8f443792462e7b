// Initial distributions against the facts of tests/golden/init.safetensors, which the frameworks' own initialisers
// gave.
#include "models/init.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/support/compare.h"
#include "tests/support/golden.h"
#include "tests/support/tensors.h"

namespace plumb::models {
namespace {

using test::bitwise_equal;
using test::GoldenFile;
using test::refused;

const GoldenFile& golden() {
  static const GoldenFile all("init.safetensors");
  return all;
}

// Our shape of a weight: (OC, IC / G, KH, KW) or (OUT, IN). PyTorch's is the same; Keras and TensorFlow 1 have
// (KH, KW, IC / G, OC) and (IN, OUT).
Shape weight_shape(const GoldenFile& layer, Convention c) {
  const std::vector<double>& extents = layer["weight_shape"].numbers();
  const std::vector<int64_t> s(extents.begin(), extents.end());
  if (c == Convention::kPyTorch) return Shape(s);
  return s.size() == 4 ? Shape{s[3], s[2], s[0], s[1]} : Shape{s[1], s[0]};
}

// Draws with growing seeds until the sample is as large as the golden's, and compares its facts.
void expect_facts(const GoldenFile& facts, const Shape& shape, const std::function<void(Tensor&, uint64_t)>& draw) {
  const double samples = facts["sample"].numbers()[0];
  Tensor x = Tensor::empty(TensorSpec(shape));
  std::vector<double> all;
  for (uint64_t seed = 1; static_cast<double>(all.size()) < samples; ++seed) {
    draw(x, seed);
    const auto more = test::to_doubles(x);
    all.insert(all.end(), more.begin(), more.end());
  }
  double mean = 0, variance = 0;
  for (const double v : all) mean += v / static_cast<double>(all.size());
  for (const double v : all) variance += (v - mean) * (v - mean) / static_cast<double>(all.size());
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  const std::string& text = facts["distribution"].text();
  const test::Arguments stated = test::arguments_of(text);
  const std::string distribution = text.substr(0, text.find(' '));
  if (distribution == "constant") {
    EXPECT_EQ(*low, stated.at("value").at(0));
    EXPECT_EQ(*high, stated.at("value").at(0));
    return;
  }
  const double expected =
      distribution == "uniform" ? stated.at("bound").at(0) / std::sqrt(3.0) : stated.at("std").at(0);
  EXPECT_NEAR(std::sqrt(variance), expected, 0.01 * expected);
  EXPECT_NEAR(mean, 0, 0.01 * expected);
  if (!stated.contains("bound")) return;
  const double bound = stated.at("bound").at(0);
  EXPECT_LE(*high, bound * (1 + 1e-6));
  EXPECT_GE(*low, -bound * (1 + 1e-6));
  EXPECT_GE(*high, bound * 0.999);
  EXPECT_LE(*low, -bound * 0.999);
}

struct Framework {
  const char* section;
  Convention convention;
};
class FrameworkTest : public testing::TestWithParam<Framework> {};
INSTANTIATE_TEST_SUITE_P(Init, FrameworkTest,
                         testing::Values(Framework{"torch", Convention::kPyTorch},
                                         Framework{"keras", Convention::kKeras},
                                         Framework{"tf1", Convention::kTensorFlow1}),
                         [](const auto& c) { return c.param.section; });

TEST_P(FrameworkTest, WeightsAndBiasesAreTheFrameworks) {
  const Convention c = GetParam().convention;
  const GoldenFile layers = golden()[GetParam().section]["layers"];
  for (const std::string& name : layers.names()) {
    const GoldenFile layer = layers[name];
    SCOPED_TRACE(name);
    const Shape shape = weight_shape(layer, c);
    const Fans f = fans(shape);

    EXPECT_EQ(f.in, layer["fans"].numbers()[0]);
    EXPECT_EQ(f.out, layer["fans"].numbers()[1]);
    expect_facts(layer["weight"], shape, [&](Tensor& w, uint64_t seed) { init_weight(w, c, f.in, f.out, seed); });
    if (!layer.contains("bias")) continue;  // tf.layers zeroed its biases
    expect_facts(layer["bias"], {shape[0]}, [&](Tensor& b, uint64_t seed) { init_bias(b, c, f.in, seed); });
  }
}

TEST_P(FrameworkTest, NamedSchemesAreTheFrameworks) {
  using enum Distribution;
  struct Scheme {
    const char* name;
    double scale;
    Fan fan;
    Distribution distribution;
  };
  const Scheme schemes[] = {{"xavier_uniform_", 1, Fan::kAverage, kUniform},
                            {"xavier_normal_", 1, Fan::kAverage, kNormal},
                            {"kaiming_uniform_relu", 2, Fan::kIn, kUniform},
                            {"kaiming_normal_relu", 2, Fan::kIn, kNormal},
                            {"kaiming_normal_relu_fan_out", 2, Fan::kOut, kNormal},
                            {"glorot_normal", 1, Fan::kAverage, kTruncatedNormal},
                            {"he_uniform", 2, Fan::kIn, kUniform},
                            {"he_normal", 2, Fan::kIn, kTruncatedNormal},
                            {"lecun_uniform", 1, Fan::kIn, kUniform},
                            {"lecun_normal", 1, Fan::kIn, kTruncatedNormal}};
  const GoldenFile layers = golden()[GetParam().section]["layers"];
  for (const std::string& name : layers.names()) {
    const GoldenFile layer = layers[name];
    for (const Scheme& s : schemes) {
      if (!layer.contains(s.name)) continue;
      SCOPED_TRACE(name + " " + s.name);
      expect_facts(layer[s.name], weight_shape(layer, GetParam().convention),
                   [&](Tensor& w, uint64_t seed) { variance_scaling(w, s.scale, s.fan, s.distribution, seed); });
    }
  }
}

TEST(InitTest, ShortNamesAreTheirSchemes) {
  const TensorSpec spec({16, 8, 3, 3}, DType::kF64);
  Tensor a = Tensor::empty(spec), b = Tensor::empty(spec);
  const auto expect_same = [&] { EXPECT_TRUE(bitwise_equal(a, b)); };

  xavier_uniform(a, 3), variance_scaling(b, 1, Fan::kAverage, Distribution::kUniform, 3), expect_same();
  xavier_normal(a, 3), variance_scaling(b, 1, Fan::kAverage, Distribution::kNormal, 3), expect_same();
  kaiming_uniform(a, 3), variance_scaling(b, 2, Fan::kIn, Distribution::kUniform, 3), expect_same();
  kaiming_normal(a, 3, Fan::kOut), variance_scaling(b, 2, Fan::kOut, Distribution::kNormal, 3), expect_same();
}

TEST(InitTest, TheSameSeedGivesTheSameNumbers) {
  Tensor a = Tensor::empty(TensorSpec({1000})), b = Tensor::empty(TensorSpec({1000})),
         part = Tensor::empty(TensorSpec({10}));

  truncated_normal(a, 2, 7);
  truncated_normal(b, 2, 7);
  truncated_normal(part, 2, 7);
  EXPECT_TRUE(bitwise_equal(a, b));
  EXPECT_TRUE(std::equal(part.data<float>().begin(), part.data<float>().end(), a.data<float>().begin()));

  truncated_normal(b, 2, 8);
  EXPECT_FALSE(bitwise_equal(a, b));
}

TEST(InitTest, WritesRaiseTheVersion) {
  Tensor x = Tensor::empty(TensorSpec({3, 4}, DType::kBf16));
  const uint32_t before = x.value->version();

  constant(x, 1.5);

  EXPECT_EQ(test::to_doubles(x), std::vector<double>(12, 1.5));
  EXPECT_EQ(x.value->version(), before + 1);
}

TEST(InitTest, RefusesWhatItCannotFill) {
  Tensor none, integers = Tensor::empty(TensorSpec({2, 2}, DType::kI64)), vector = Tensor::empty(TensorSpec({4}));

  EXPECT_TRUE(refused([&] { constant(none, 0); }, "the tensor is empty"));
  EXPECT_TRUE(refused([&] { uniform(integers, 0, 1, 1); }, "make it of a floating dtype"));
  EXPECT_TRUE(refused([&] { kaiming_normal(vector, 1); }, "has no fans"));
  EXPECT_TRUE(refused([&] { kaiming_normal(none, 1); }, "the weight is an empty tensor"));
  EXPECT_TRUE(refused([&] { init_weight(vector, Convention::kKeras, 0, 4, 1); }, "with 0 inputs"));
}

}  // namespace
}  // namespace plumb::models
