#include "tests/models/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/convert.h"
#include "tests/support/tensors.h"

namespace plumb::models {
namespace {

// u of the generator: flat index i of a stream.
float unit(uint64_t stream, uint64_t i) {
  uint64_t z = (stream << 32) + i + 0x9E3779B97F4A7C15ull;  // splitmix64
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return static_cast<float>((z ^ (z >> 31)) >> 40) * 0x1p-24f;
}

// Fills a parameter or a running statistic with the numbers of its stream.
void generate(Tensor to, const std::string& name, uint64_t stream) {
  Tensor t = Tensor::empty(to.spec());
  const auto out = t.mutable_data<float>();
  const double fan_in = static_cast<double>(t.numel()) / static_cast<double>(t.shape()[0]);
  const auto bound = static_cast<float>(std::sqrt(6.0 / fan_in));
  const bool is_norm_weight = name.find("bn") != name.npos && name.ends_with(".weight");
  const bool around_one = t.rank() == 1 && (name.ends_with("running_var") || is_norm_weight);
  for (size_t i = 0; i < out.size(); ++i) {
    const float u = unit(stream, i);
    out[i] = t.rank() > 1 ? (2 * u - 1) * bound : (around_one ? 0.5f + u : (2 * u - 1) * 0.01f);
  }
  to.copy_from(t);
}

}  // namespace

void generate(const Network& network, const Json& listed) {
  std::vector<NamedTensor> all = network.parameters();
  all.insert(all.end(), network.buffers().begin(), network.buffers().end());
  ASSERT_EQ(listed.size(), all.size());
  for (size_t p = 0; p < listed.size(); ++p) {
    const auto by_name = std::ranges::find(all, listed[p]["name"].get<std::string>(), &NamedTensor::name);
    const NamedTensor& t = by_name == all.end() ? all[p] : *by_name;
    generate(t.tensor, t.name, listed[p]["p"].get<uint64_t>());
    EXPECT_EQ(t.tensor.at(std::vector<int64_t>(static_cast<size_t>(t.tensor.rank()))),
              listed[p]["first"][0].get<float>())
        << t.name;
  }
}

Tensor generated_images(Layout layout) {
  Tensor x = Tensor::empty(TensorSpec(Shape{4, 3, 32, 32}));
  const auto out = x.mutable_data<float>();
  for (size_t i = 0; i < out.size(); ++i) out[i] = unit(1 << 20, i);
  return to(to(x, layout), detail::ctx.policy.device);
}

Tensor labels(const Json& batch) {
  const auto list = batch["labels"].get<std::vector<int64_t>>();
  return to(Tensor::from(std::span<const int64_t>(list), TensorSpec(Shape{4}, DType::kI64)), detail::ctx.policy.device);
}

void expect_logits(const Json& want, const Tensor& got, double tolerance) {
  const auto values = want["data"].get<std::vector<double>>();
  const std::vector<double> have = test::to_doubles(got);
  ASSERT_EQ(values.size(), have.size());
  double largest = 0;
  for (const double v : values) largest = std::max(largest, std::abs(v));
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(have[i], values[i], tolerance * largest) << "logit " << i;
}

void expect_summary(const Json& want, const Json& listed, const Tensor& got, double tolerance) {
  const Tensor here = test::on_host(got);
  const auto have = here.data<float>();
  double squares = 0;
  for (const float v : have) squares += static_cast<double>(v) * v;
  const double norm = want["norm"], rms = norm / std::sqrt(static_cast<double>(have.size()));
  ASSERT_EQ(have.size(), want["size"].get<size_t>()) << listed["name"];
  EXPECT_NEAR(std::sqrt(squares), norm, tolerance * norm) << listed["name"];
  const Json& indices = listed["indices"];
  for (size_t i = 0; i < indices.size(); ++i) {
    EXPECT_NEAR(have[indices[i].get<size_t>()], want["samples"][i].get<double>(), 10 * tolerance * rms + 1e-12)
        << listed["name"] << " at " << indices[i];
  }
}

void expect_statistics(const Json& want, const Json& listed, const Network& network, double tolerance) {
  ASSERT_EQ(want.size(), network.buffers().size());
  for (const Json& entry : listed) {
    const std::string name = entry["name"];
    const auto statistic = std::ranges::find(network.buffers(), name, &NamedTensor::name);
    ASSERT_EQ(want.contains(name), statistic != network.buffers().end()) << name;
    if (want.contains(name)) expect_summary(want[name], entry, statistic->tensor, tolerance);
  }
}

}  // namespace plumb::models
