// Every op against PyTorch and TensorFlow, forward and backward, in every layout (tests/golden/README.md tells where
// the numbers come from).
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "ops/batch_norm.h"
#include "ops/conv2d.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/grad.h"
#include "ops/layer_norm.h"
#include "ops/linear.h"
#include "ops/matmul.h"
#include "ops/mse.h"
#include "ops/pad2d.h"
#include "ops/pool2d.h"
#include "ops/reduce.h"
#include "ops/softmax.h"
#include "tests/support/compare.h"
#include "tests/support/golden.h"

namespace plumb {
namespace {

using test::Arguments;
using test::GoldenFile;
using Named = std::map<std::string, Tensor>;
using Op = std::function<Tensor(const Named& in, const Arguments& params)>;

const GoldenFile& golden() {
  static const GoldenFile all("ops.safetensors");
  return all;
}

std::vector<int> ints(const Arguments& p, const std::string& name) { return {p.at(name).begin(), p.at(name).end()}; }
double number(const Arguments& p, const std::string& name) { return p.at(name).at(0); }

Conv2dParams conv_params(const Arguments& p) {
  const std::vector<int> s = ints(p, "stride"), d = ints(p, "dilation");
  const std::vector<int> pad = ints(p, "padding");  // top, left, bottom, right
  return {.stride = {s[0], s[1]},
          .dilation = {d[0], d[1]},
          .padding = {pad[0], pad[2], pad[1], pad[3]},
          .groups = ints(p, "groups")[0]};
}
Pool2dParams pool_params(const Arguments& p) {
  const std::vector<int> k = ints(p, "kernel"), s = ints(p, "stride"), pad = ints(p, "padding");
  const bool counts_pad = !p.contains("count_include_pad") || number(p, "count_include_pad") != 0;
  return {{k[0], k[1]}, {s[0], s[1]}, {pad[0], pad[2], pad[1], pad[3]}, counts_pad};
}
Tensor normalised(const Named& in, const Arguments& p) {
  const BatchNormParams params{number(p, "eps"), number(p, "momentum"), 1, number(p, "training") != 0};
  return batch_norm(in.at("x"), in.at("gamma"), in.at("beta"), in.at("running_mean"), in.at("running_var"), params);
}
Tensor reduced(Tensor (*op)(const Tensor&, const Dims&, bool), const Named& in, const Arguments& p) {
  return op(in.at("x"), ints(p, "axes"), false);
}

using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);
const std::map<std::string, Unary> kUnary = {
    {"abs", abs},         {"exp", exp},   {"gelu", gelu}, {"gelu_tanh", gelu_tanh},
    {"log", log},         {"neg", neg},   {"relu", relu}, {"reciprocal", reciprocal},
    {"sigmoid", sigmoid}, {"silu", silu}, {"sqrt", sqrt}, {"softplus", softplus},
    {"square", square},   {"tanh", tanh}};
const std::map<std::string, Binary> kBinary = {{"add", add}, {"sub", sub},         {"mul", mul},
                                               {"div", div}, {"maximum", maximum}, {"minimum", minimum}};
const std::map<std::string, Op> kOthers = {
    {"rsqrt", [](const Named& in, const Arguments&) { return pow(in.at("x"), -0.5); }},
    {"leaky_relu", [](const Named& in, const Arguments& p) { return leaky_relu(in.at("x"), number(p, "slope")); }},
    {"conv2d",
     [](const Named& in, const Arguments& p) {
       return conv2d(in.at("x"), in.at("w"), in.contains("b") ? in.at("b") : Tensor(), conv_params(p));
     }},
    {"matmul", [](const Named& in, const Arguments&) { return matmul(in.at("x"), in.at("w")); }},
    {"linear", [](const Named& in, const Arguments&) { return linear(in.at("x"), in.at("w"), in.at("b")); }},
    {"max_pool2d", [](const Named& in, const Arguments& p) { return max_pool2d(in.at("x"), pool_params(p)); }},
    {"avg_pool2d", [](const Named& in, const Arguments& p) { return avg_pool2d(in.at("x"), pool_params(p)); }},
    {"global_avg_pool", [](const Named& in, const Arguments&) { return global_avg_pool2d(in.at("x")); }},
    {"pad2d",
     [](const Named& in, const Arguments& p) {
       const std::vector<int> by = ints(p, "padding");
       return pad2d(in.at("x"), {by[0], by[2], by[1], by[3]}, number(p, "value"));
     }},
    {"batch_norm", &normalised},
    {"layer_norm",
     [](const Named& in, const Arguments& p) {
       return layer_norm(in.at("x"), in.at("gamma"), in.at("beta"), number(p, "eps"));
     }},
    {"softmax", [](const Named& in, const Arguments& p) { return softmax(in.at("x"), ints(p, "axis")[0]); }},
    {"log_softmax", [](const Named& in, const Arguments& p) { return log_softmax(in.at("x"), ints(p, "axis")[0]); }},
    {"cross_entropy", [](const Named& in, const Arguments&) { return cross_entropy(in.at("x"), in.at("labels")); }},
    {"mse_loss", [](const Named& in, const Arguments&) { return mse(in.at("x"), in.at("target")); }},
    {"sum", [](const Named& in, const Arguments& p) { return reduced(&sum, in, p); }},
    {"mean", [](const Named& in, const Arguments& p) { return reduced(&mean, in, p); }},
    {"max", [](const Named& in, const Arguments& p) { return reduced(&max, in, p); }},
};
Op op_of(const std::string& name) {
  if (kUnary.contains(name))
    return [op = kUnary.at(name)](const Named& in, const Arguments&) { return op(in.at("x")); };
  if (!kBinary.contains(name)) return kOthers.at(name);
  return [op = kBinary.at(name)](const Named& in, const Arguments&) { return op(in.at("x"), in.at("w")); };
}

// Golden numbers of ops that the library does not have.
const std::set<std::string> kNotOurs = {
    "attention", "conv_transpose2d", "cos", "elu", "embedding", "erf", "gru", "lstm", "sin"};

Tensor tensor(const GoldenFile& t, DType dtype, Layout layout = Layout::kNchw) {
  return test::from_doubles(t.numbers(), {t.shape(), dtype, t.shape().rank() == 4 ? layout : Layout::kNchw});
}

// Outputs and gradients of a case, in f64 and f32 and in every layout.
void expect_numbers_of(const GoldenFile& c, const Op& op) {
  const GoldenFile inputs = c["inputs"], gradients_of = c["gradients"], outputs = c["outputs"];
  const Arguments params = test::arguments_of(c["params"].text());
  for (const DType dtype : {DType::kF64, DType::kF32}) {
    for (const Layout layout : kPublicLayouts) {
      SCOPED_TRACE(message("{} {}", dtype, layout));
      // Of x up to 1000, rounded to f32, the exponentials are that far off.
      const double bound = dtype == DType::kF64 ? 1e-13 : 6e-5;
      Named in;
      std::vector<Tensor> leaves;
      for (const std::string& name : inputs.names()) {
        const bool is_activation = name == "x" && c["op"].text() != "matmul";
        in[name] = tensor(inputs[name], name == "labels" ? DType::kI64 : dtype, is_activation ? layout : Layout::kNchw);
        if (gradients_of.contains(name)) leaves.push_back(in[name].require_grad());
      }

      const Tensor y = op(in, params);
      const TensorList gradients = grad(y, leaves, tensor(c["dy"], y.dtype(), y.layout()));

      size_t next = 0;
      for (const std::string& name : gradients_of.names())
        EXPECT_TRUE(test::close(gradients[next++], tensor(gradients_of[name], DType::kF64), bound))
            << "gradient of " << name;
      for (const std::string& name : outputs.names())
        EXPECT_TRUE(test::close(name == "y" ? y : in[name], tensor(outputs[name], DType::kF64), bound)) << name;
    }
  }
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, IsWhatTheFrameworksCompute) {
  const GoldenFile c = golden()["cases"][GetParam()];
  expect_numbers_of(c, op_of(c["op"].text()));
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  const GoldenFile cases = golden()["cases"];
  for (const std::string& name : cases.names()) {
    if (!kNotOurs.contains(cases[name]["op"].text())) all.push_back(name);
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(, Golden, testing::ValuesIn(names()), [](const auto& test) { return test.param; });

// Keras' layer with its own defaults: its momentum weighs the old statistics, its running variance is biased.
Tensor normalised_by_keras(const Named& in, const Arguments& p) {
  const BatchNormParams params = batch_norm_defaults(Convention::kKeras, number(p, "training") != 0);
  EXPECT_EQ(double{params.epsilon}, number(p, "eps"));
  EXPECT_NEAR(1 - params.momentum, number(p, "momentum"), 1e-15);
  return batch_norm(in.at("x"), in.at("gamma"), in.at("beta"), in.at("running_mean"), in.at("running_var"), params);
}

TEST(GoldenKeras, BatchNormIsItsLayer) {
  const GoldenFile cases = golden()["keras_batch_norm"];
  EXPECT_EQ(cases.names().size(), 3u);
  for (const std::string& name : cases.names()) {
    SCOPED_TRACE(name);
    expect_numbers_of(cases[name], &normalised_by_keras);
  }
}

}  // namespace
}  // namespace plumb
