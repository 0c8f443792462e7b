// Every op against PyTorch and TensorFlow, forward and backward, in every layout (tests/golden/README.md tells where
// the numbers come from).
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ops/batch_norm.h"
#include "ops/conv2d.h"
#include "ops/convert.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/grad.h"
#include "ops/linear.h"
#include "ops/matmul.h"
#include "ops/mse.h"
#include "ops/pad2d.h"
#include "ops/pool2d.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "tests/support/compare.h"
#include "tests/support/json.h"

namespace plumb {
namespace {

using test::Json;
using Named = std::map<std::string, Tensor>;
using Op = Tensor (*)(const Named& in, const Json& params);

const Json& golden() {
  static const Json all = test::golden_json("ops.json");
  return all;
}

Conv2dParams conv_params(const Json& p) {
  const Json &s = p["stride"], &d = p["dilation"], &pad = p["padding"];  // top, left, bottom, right
  return {.stride = {s[0], s[1]},
          .dilation = {d[0], d[1]},
          .padding = {pad[0], pad[2], pad[1], pad[3]},
          .groups = p["groups"]};
}
Pool2dParams pool_params(const Json& p) {
  const Json &k = p["kernel"], &s = p["stride"], &pad = p["padding"];
  return {{k[0], k[1]}, {s[0], s[1]}, {pad[0], pad[2], pad[1], pad[3]}, p.value("count_include_pad", true)};
}
Tensor normalised(const Named& in, const Json& p) {
  const BatchNormParams params{p["eps"].get<double>(), p["momentum"].get<double>(), 1, p["training"].get<bool>()};
  return batch_norm(in.at("x"), in.at("gamma"), in.at("beta"), in.at("running_mean"), in.at("running_var"), params);
}
Tensor reduced(Tensor (*op)(const Tensor&, const Dims&, bool), const Named& in, const Json& p) {
  return op(in.at("x"), p["axes"].get<std::vector<int>>(), false);
}

#define UNARY(op)                                                    \
  {                                                                  \
#op, [](const Named& in, const Json&) { return op(in.at("x")); } \
  }
#define BINARY(op)                                                               \
  {                                                                              \
#op, [](const Named& in, const Json&) { return op(in.at("x"), in.at("w")); } \
  }
const std::map<std::string, Op> kOps = {
    UNARY(abs),
    UNARY(exp),
    UNARY(gelu),
    UNARY(gelu_tanh),
    UNARY(log),
    UNARY(neg),
    UNARY(reciprocal),
    UNARY(relu),
    UNARY(sigmoid),
    UNARY(silu),
    UNARY(sqrt),
    UNARY(softplus),
    UNARY(square),
    UNARY(tanh),
    BINARY(add),
    BINARY(sub),
    BINARY(mul),
    BINARY(div),
    BINARY(maximum),
    BINARY(minimum),
    BINARY(matmul),
    {"rsqrt", [](const Named& in, const Json&) { return pow(in.at("x"), -0.5); }},
    {"leaky_relu", [](const Named& in, const Json& p) { return leaky_relu(in.at("x"), p["slope"].get<double>()); }},
    {"conv2d",
     [](const Named& in, const Json& p) {
       return conv2d(in.at("x"), in.at("w"), in.contains("b") ? in.at("b") : Tensor(), conv_params(p));
     }},
    {"linear", [](const Named& in, const Json&) { return linear(in.at("x"), in.at("w"), in.at("b")); }},
    {"max_pool2d", [](const Named& in, const Json& p) { return max_pool2d(in.at("x"), pool_params(p)); }},
    {"avg_pool2d", [](const Named& in, const Json& p) { return avg_pool2d(in.at("x"), pool_params(p)); }},
    {"global_avg_pool", [](const Named& in, const Json&) { return global_avg_pool2d(in.at("x")); }},
    {"pad2d",
     [](const Named& in, const Json& p) {
       const Json& by = p["padding"];
       return pad2d(in.at("x"), {by[0], by[2], by[1], by[3]}, p["value"].get<double>());
     }},
    {"batch_norm", &normalised},
    {"softmax", [](const Named& in, const Json& p) { return softmax(in.at("x"), p["axis"].get<int>()); }},
    {"log_softmax", [](const Named& in, const Json& p) { return log_softmax(in.at("x"), p["axis"].get<int>()); }},
    {"cross_entropy", [](const Named& in, const Json&) { return cross_entropy(in.at("x"), in.at("labels")); }},
    {"mse_loss", [](const Named& in, const Json&) { return mse(in.at("x"), in.at("target")); }},
    {"sum", [](const Named& in, const Json& p) { return reduced(&sum, in, p); }},
    {"mean", [](const Named& in, const Json& p) { return reduced(&mean, in, p); }},
    {"max", [](const Named& in, const Json& p) { return reduced(&max, in, p); }},
};
#undef UNARY
#undef BINARY

// Golden numbers of ops that the library does not have.
const std::set<std::string> kNotOurs = {"attention", "conv_transpose2d", "cos", "elu", "embedding", "erf", "gru",
                                        "lstm",      "layer_norm",       "sin"};

Tensor tensor(const Json& t, DType dtype, Layout layout = Layout::kNchw) {
  const auto extents = t["shape"].get<std::vector<int64_t>>();
  const auto values = t["data"].get<std::vector<double>>();
  const Shape shape{std::span<const int64_t>(extents)};
  return test::from_doubles(values, {shape, dtype, shape.rank() == 4 ? layout : Layout::kNchw});
}

// Outputs and gradients of a case, in f64 and f32 and in every layout.
void expect_numbers_of(const Json& c, Op op) {
  for (const DType dtype : {DType::kF64, DType::kF32}) {
    for (const Layout layout : kPublicLayouts) {
      SCOPED_TRACE(message("{} {}", dtype, layout));
      // Of x up to 1000, rounded to f32, the exponentials are that far off.
      const double bound = dtype == DType::kF64 ? 1e-13 : 6e-5;
      Named in;
      std::vector<Tensor> leaves;
      for (const auto& [name, input] : c["inputs"].items()) {
        const bool is_activation = name == "x" && c["op"] != "matmul";
        in[name] = tensor(input, name == "labels" ? DType::kI64 : dtype, is_activation ? layout : Layout::kNchw);
        if (c["gradients"].contains(name)) leaves.push_back(in[name].require_grad());
      }

      const Tensor y = op(in, c["params"]);
      const TensorList gradients = grad(y, leaves, tensor(c["dy"], y.dtype(), y.layout()));

      size_t next = 0;
      for (const auto& [name, gradient] : c["gradients"].items())
        EXPECT_TRUE(test::close(gradients[next++], tensor(gradient, DType::kF64), bound)) << "gradient of " << name;
      for (const auto& [name, output] : c["outputs"].items())
        EXPECT_TRUE(test::close(name == "y" ? y : in[name], tensor(output, DType::kF64), bound)) << name;
    }
  }
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, IsWhatTheFrameworksCompute) {
  const Json& c = golden()["cases"][GetParam()];
  expect_numbers_of(c, kOps.at(c["op"]));
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, c] : golden()["cases"].items()) {
    if (!kNotOurs.contains(c["op"])) all.push_back(name);
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(, Golden, testing::ValuesIn(names()), [](const auto& test) { return test.param; });

// Keras' layer with its own defaults: its momentum weighs the old statistics, its running variance is biased.
Tensor normalised_by_keras(const Named& in, const Json& p) {
  const BatchNormParams params = batch_norm_defaults(Convention::kKeras, p["training"].get<bool>());
  EXPECT_EQ(double{params.epsilon}, p["eps"].get<double>());
  EXPECT_NEAR(1 - params.momentum, p["momentum"].get<double>(), 1e-15);
  return batch_norm(in.at("x"), in.at("gamma"), in.at("beta"), in.at("running_mean"), in.at("running_var"), params);
}

TEST(GoldenKeras, BatchNormIsItsLayer) {
  EXPECT_EQ(golden()["keras_batch_norm"].size(), 3u);
  for (const auto& [name, c] : golden()["keras_batch_norm"].items()) {
    SCOPED_TRACE(name);
    expect_numbers_of(c, &normalised_by_keras);
  }
}

}  // namespace
}  // namespace plumb
