#include "tests/models/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

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
  const bool around_one = t.rank() == 1 && (name.ends_with("running_var") || name.ends_with(".weight"));
  for (size_t i = 0; i < out.size(); ++i) {
    const float u = unit(stream, i);
    out[i] = t.rank() > 1 ? (2 * u - 1) * bound : (around_one ? 0.5f + u : (2 * u - 1) * 0.01f);
  }
  to.copy_from(t);
}

}  // namespace

std::vector<Listed> listed_of(const GoldenFile& network) {
  const GoldenFile all = network["parameters"];
  std::vector<Listed> listed;
  for (const std::string& name : test::words_of(all["names"].text())) {
    const size_t p = listed.size();
    const std::vector<double> shape = all["shape"].row(p);
    const double size = std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies());
    listed.push_back({name, static_cast<size_t>(size), all["first"].row(p), all["indices"].row(p)});
  }
  return listed;
}

void generate(const Network& network, const std::vector<Listed>& listed) {
  std::vector<NamedTensor> all = network.parameters();
  all.insert(all.end(), network.buffers().begin(), network.buffers().end());
  ASSERT_EQ(listed.size(), all.size());
  for (size_t p = 0; p < listed.size(); ++p) {
    const auto by_name = std::ranges::find(all, listed[p].name, &NamedTensor::name);
    const NamedTensor& t = by_name == all.end() ? all[p] : *by_name;
    generate(t.tensor, t.name, p);
    EXPECT_EQ(t.tensor.at(std::vector<int64_t>(static_cast<size_t>(t.tensor.rank()))),
              static_cast<float>(listed[p].first[0]))
        << t.name;
  }
}

Tensor generated_images(Layout layout, int64_t side) {
  Tensor x = Tensor::empty(TensorSpec(Shape{4, 3, side, side}));
  const auto out = x.mutable_data<float>();
  for (size_t i = 0; i < out.size(); ++i) out[i] = unit(1 << 20, i);
  return to(to(x, layout), detail::ctx.policy.device);
}

Tensor labels(const GoldenFile& batch) {
  return test::from_doubles(batch["labels"].numbers(), TensorSpec(Shape{4}, DType::kI64));
}

void expect_logits(const GoldenFile& want, const Tensor& got, double tolerance) {
  const std::vector<double>& values = want.numbers();
  const std::vector<double> have = test::to_doubles(got);
  ASSERT_EQ(values.size(), have.size());
  double largest = 0;
  for (const double v : values) largest = std::max(largest, std::abs(v));
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(have[i], values[i], tolerance * largest) << "logit " << i;
}

void expect_summary(const GoldenFile& want, const Listed& listed, const Tensor& got, double tolerance) {
  const Tensor here = test::on_host(got);
  const auto have = here.data<float>();
  double squares = 0;
  for (const float v : have) squares += static_cast<double>(v) * v;
  const std::vector<double>& known = want.numbers();  // norm, sum, samples
  const double norm = known[0], rms = norm / std::sqrt(static_cast<double>(have.size()));
  ASSERT_EQ(have.size(), listed.size) << listed.name;
  EXPECT_NEAR(std::sqrt(squares), norm, tolerance * norm) << listed.name;
  ASSERT_EQ(known.size(), 2 + listed.indices.size()) << listed.name;
  for (size_t i = 0; i < listed.indices.size(); ++i) {
    EXPECT_NEAR(have[static_cast<size_t>(listed.indices[i])], known[2 + i], 10 * tolerance * rms + 1e-12)
        << listed.name << " at " << listed.indices[i];
  }
}

void expect_statistics(const GoldenFile& want, const std::vector<Listed>& listed, const Network& network,
                       double tolerance) {
  size_t found = 0;
  for (const Listed& entry : listed) {
    const std::string& name = entry.name;
    if (!want.contains(name)) continue;
    ++found;
    const auto statistic = std::ranges::find(network.buffers(), name, &NamedTensor::name);
    ASSERT_NE(statistic, network.buffers().end()) << name;
    expect_summary(want[name], entry, statistic->tensor, tolerance);
  }
  EXPECT_EQ(found, want.names().size());
}

}  // namespace plumb::models
