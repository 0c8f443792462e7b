// Every optimizer against the frameworks themselves: ten steps of each case of tests/golden/optimizers.json.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "optim/adam.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"
#include "tests/support/json.h"
#include "tests/support/tensors.h"

namespace plumb::optim {
namespace {

using test::Json;

const Json& golden() {
  static const Json all = test::golden_json("optimizers.json");
  return all;
}

struct Framework {
  const char* section;
  Convention convention;
};
constexpr Framework kFrameworks[] = {
    {"torch", Convention::kPyTorch}, {"keras", Convention::kKeras}, {"tf1", Convention::kTensorFlow1}};

struct Case {
  std::string section, name;
  Convention convention;
  DType dtype;
};

// The first of the framework's names for an argument that is there and is a number; the default if there is none.
double number(const Json& arguments, std::initializer_list<const char*> names, double otherwise) {
  for (const char* name : names) {
    if (arguments.contains(name) && arguments[name].is_number()) return arguments[name].get<double>();
  }
  return otherwise;
}
bool flag(const Json& arguments, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](auto name) { return arguments.value(name, false); });
}
double beta(const Json& arguments, size_t i, std::initializer_list<const char*> names) {
  return arguments.contains("betas") ? arguments["betas"][i].get<double>() : number(arguments, names, NAN);
}

// Our options for a framework's arguments, each of which must be named there.
Sgd::Options sgd_options(const Json& a, Convention c) {
  return {.learning_rate = number(a, {"lr", "learning_rate"}, NAN),
          .momentum = number(a, {"momentum"}, 0),
          .dampening = number(a, {"dampening"}, 0),
          .nesterov = flag(a, {"nesterov", "use_nesterov"}),
          .weight_decay = number(a, {"weight_decay"}, 0),
          .convention = c};
}
template <class Options>
Options adam_options(const Json& a, Convention c) {
  return {.learning_rate = number(a, {"lr", "learning_rate"}, NAN),
          .beta1 = beta(a, 0, {"beta_1", "beta1"}),
          .beta2 = beta(a, 1, {"beta_2", "beta2"}),
          .epsilon = number(a, {"eps", "epsilon"}, NAN),
          .weight_decay = number(a, {"weight_decay"}, 0),
          .convention = c};
}
RmsProp::Options rmsprop_options(const Json& a, Convention c) {
  return {.learning_rate = number(a, {"lr", "learning_rate"}, NAN),
          .rho = number(a, {"alpha", "rho", "decay"}, NAN),
          .epsilon = number(a, {"eps", "epsilon"}, NAN),
          .momentum = number(a, {"momentum"}, 0),
          .centered = flag(a, {"centered"}),
          .weight_decay = number(a, {"weight_decay"}, 0),
          .convention = c};
}

std::unique_ptr<Optimizer> make_optimizer(const std::string& type, const Json& a, Convention c,
                                          std::span<const Tensor> parameters) {
  if (type == "SGD" || type == "GradientDescentOptimizer" || type == "MomentumOptimizer") {
    return std::make_unique<Sgd>(parameters, sgd_options(a, c));
  }
  if (type == "Adam" || type == "AdamOptimizer") {
    return std::make_unique<Adam>(parameters, adam_options<Adam::Options>(a, c));
  }
  if (type == "AdamW") return std::make_unique<AdamW>(parameters, adam_options<AdamW::Options>(a, c));
  if (type == "RMSprop" || type == "RMSPropOptimizer") {
    return std::make_unique<RmsProp>(parameters, rmsprop_options(a, c));
  }
  throw Error("no optimizer of ours is called " + type);
}

std::vector<double> numbers(const Json& tensor) { return tensor["data"].get<std::vector<double>>(); }
std::vector<Tensor> tensors(const Json& by_name, DType t) {
  std::vector<Tensor> all;
  for (const char* name : {"a", "b"}) {
    const auto shape = by_name[name]["shape"].get<std::vector<int64_t>>();
    all.push_back(test::from_doubles(numbers(by_name[name]), TensorSpec(Shape(shape), t)));
  }
  return all;
}

// |got - want| <= tolerance max(scale, |want|), in every element.
void expect_close(const Tensor& got, const Json& want, double tolerance, double scale, const std::string& where) {
  const std::vector<double> g = test::to_doubles(got), w = numbers(want);
  ASSERT_EQ(g.size(), w.size()) << where;
  for (size_t i = 0; i < g.size(); ++i) {
    EXPECT_LE(std::abs(g[i] - w[i]), tolerance * std::max(scale, std::abs(w[i])))
        << where << ", element " << i << ": " << g[i] << " and not " << w[i];
  }
}

// The frameworks' names for our states.
const Json* state_of(const Json& states, const std::string& ours) {
  static const std::map<std::string, std::vector<const char*>> names{
      {"velocity", {"momentum_buffer", "momentums", "momentum"}},
      {"mean", {"exp_avg", "grad_avg", "m", "average_gradients", "mg", "momentums"}},
      {"mean_square", {"exp_avg_sq", "square_avg", "v", "velocities", "rms"}}};
  for (const char* name : names.at(ours)) {
    if (states.contains(name)) return &states[name];
  }
  return nullptr;
}

class GoldenTest : public testing::TestWithParam<Case> {};

TEST_P(GoldenTest, TenStepsAgree) {
  const Case& p = GetParam();
  const Json& c = golden()[p.section][p.name];
  const bool exact = p.dtype == DType::kF64;
  const double tolerance = exact ? 1e-12 : 1e-5;
  std::vector<Tensor> parameters = tensors(golden()["initial"], p.dtype);
  for (Tensor& w : parameters) w.require_grad();
  const auto optimizer = make_optimizer(c["optimizer"], c["arguments"], p.convention, parameters);

  for (size_t t = 0; t < c["steps"].size(); ++t) {
    optimizer->set_learning_rate(c["lr"][t]);
    optimizer->step(tensors(golden()["gradients"][t], p.dtype));

    const std::string where = "step " + std::to_string(t);
    expect_close(parameters[0], c["steps"][t]["a"], tolerance, exact ? 0 : 1, where + ", a");
    expect_close(parameters[1], c["steps"][t]["b"], tolerance, exact ? 0 : 1, where + ", b");
  }

  EXPECT_EQ(optimizer->steps(), 10);
  for (const auto& [name, tensor] : optimizer->state()) {
    const size_t dot = name.find('.');
    if (dot == std::string::npos) continue;
    const Json* want = state_of(c["state"], name.substr(0, dot));
    ASSERT_TRUE(want) << name;
    expect_close(tensor, (*want)[name.substr(dot + 1) == "0" ? "a" : "b"], tolerance, exact ? 0 : 1, name);
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Framework& f : kFrameworks) {
    for (const auto& [name, unused] : golden()[f.section].items()) {
      for (const DType t : {DType::kF64, DType::kF32}) all.push_back({f.section, name, f.convention, t});
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Optimizers, GoldenTest, testing::ValuesIn(cases()), [](const auto& c) {
  return c.param.section + "_" + c.param.name + "_" + to_string(c.param.dtype);
});

TEST(GoldenDefaultsTest, AreTheFrameworks) {
  const std::map<std::string, std::vector<const char*>> classes{
      {"torch", {"SGD", "Adam", "AdamW", "RMSprop"}},
      {"keras", {"SGD", "Adam", "AdamW", "RMSprop"}},
      {"tf1", {"GradientDescentOptimizer", "MomentumOptimizer", "AdamOptimizer", "RMSPropOptimizer"}}};
  const auto same = [](double ours, double theirs) {
    return ours == theirs || (std::isnan(ours) && std::isnan(theirs));
  };
  for (const Framework& f : kFrameworks) {
    for (const std::string type : classes.at(f.section)) {
      const Json& a = golden()[std::string(f.section) + "_defaults"][type];
      SCOPED_TRACE(f.section + (" " + type));
      const auto check_adam = [&](const auto& ours, const auto& theirs) {
        EXPECT_EQ(ours.learning_rate, theirs.learning_rate);
        EXPECT_EQ(ours.beta1, theirs.beta1);
        EXPECT_EQ(ours.beta2, theirs.beta2);
        EXPECT_EQ(ours.epsilon, theirs.epsilon);
        EXPECT_EQ(ours.weight_decay, theirs.weight_decay);
        EXPECT_EQ(ours.convention, f.convention);
      };
      if (type == "AdamW") {
        check_adam(AdamW::Options::defaults(f.convention), adam_options<AdamW::Options>(a, f.convention));
      } else if (type.starts_with("Adam")) {
        check_adam(Adam::Options::defaults(f.convention), adam_options<Adam::Options>(a, f.convention));
      } else if (type.starts_with("RMS")) {
        const auto ours = RmsProp::Options::defaults(f.convention), theirs = rmsprop_options(a, f.convention);
        EXPECT_TRUE(same(ours.learning_rate, theirs.learning_rate));
        EXPECT_EQ(ours.rho, theirs.rho);
        EXPECT_EQ(ours.epsilon, theirs.epsilon);
        EXPECT_EQ(ours.momentum, theirs.momentum);
        EXPECT_EQ(ours.centered, theirs.centered);
        EXPECT_EQ(ours.weight_decay, theirs.weight_decay);
        EXPECT_EQ(ours.convention, f.convention);
      } else {
        const auto ours = Sgd::Options::defaults(f.convention), theirs = sgd_options(a, f.convention);
        EXPECT_TRUE(same(ours.learning_rate, theirs.learning_rate));
        EXPECT_EQ(ours.momentum, theirs.momentum);
        EXPECT_EQ(ours.dampening, theirs.dampening);
        EXPECT_EQ(ours.nesterov, theirs.nesterov);
        EXPECT_EQ(ours.weight_decay, theirs.weight_decay);
        EXPECT_EQ(ours.convention, f.convention);
      }
    }
  }
}

}  // namespace
}  // namespace plumb::optim
