// Every optimizer against the frameworks themselves: ten steps of each case of tests/golden/optimizers.safetensors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "optim/adam.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"
#include "tests/support/golden.h"
#include "tests/support/tensors.h"

namespace plumb::optim {
namespace {

using test::Arguments;
using test::GoldenFile;

const GoldenFile& golden() {
  static const GoldenFile all("optimizers.safetensors");
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
double number(const Arguments& arguments, std::initializer_list<const char*> names, double otherwise) {
  for (const char* name : names) {
    const auto found = arguments.find(name);
    if (found != arguments.end() && !found->second.empty()) return found->second[0];
  }
  return otherwise;
}
bool flag(const Arguments& arguments, std::initializer_list<const char*> names) {
  return number(arguments, names, 0) != 0;
}
double beta(const Arguments& arguments, size_t i, std::initializer_list<const char*> names) {
  return arguments.contains("betas") ? arguments.at("betas")[i] : number(arguments, names, NAN);
}

// Our options for a framework's arguments, each of which must be named there.
Sgd::Options sgd_options(const Arguments& a, Convention c) {
  return {.learning_rate = number(a, {"lr", "learning_rate"}, NAN),
          .momentum = number(a, {"momentum"}, 0),
          .dampening = number(a, {"dampening"}, 0),
          .nesterov = flag(a, {"nesterov", "use_nesterov"}),
          .weight_decay = number(a, {"weight_decay"}, 0),
          .convention = c};
}
template <class Options>
Options adam_options(const Arguments& a, Convention c) {
  return {.learning_rate = number(a, {"lr", "learning_rate"}, NAN),
          .beta1 = beta(a, 0, {"beta_1", "beta1"}),
          .beta2 = beta(a, 1, {"beta_2", "beta2"}),
          .epsilon = number(a, {"eps", "epsilon"}, NAN),
          .weight_decay = number(a, {"weight_decay"}, 0),
          .convention = c};
}
RmsProp::Options rmsprop_options(const Arguments& a, Convention c) {
  return {.learning_rate = number(a, {"lr", "learning_rate"}, NAN),
          .rho = number(a, {"alpha", "rho", "decay"}, NAN),
          .epsilon = number(a, {"eps", "epsilon"}, NAN),
          .momentum = number(a, {"momentum"}, 0),
          .centered = flag(a, {"centered"}),
          .weight_decay = number(a, {"weight_decay"}, 0),
          .convention = c};
}

std::unique_ptr<Optimizer> make_optimizer(const std::string& type, const Arguments& a, Convention c,
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

// The gradients of a step.
std::vector<Tensor> gradients(size_t step, DType t) {
  std::vector<Tensor> all;
  for (const char* name : {"a", "b"}) {
    all.push_back(
        test::from_doubles(golden()["gradients"][name].row(step), TensorSpec(golden()["initial"][name].shape(), t)));
  }
  return all;
}
std::vector<Tensor> initial(DType t) {
  std::vector<Tensor> all;
  for (const char* name : {"a", "b"}) {
    const GoldenFile w = golden()["initial"][name];
    all.push_back(test::from_doubles(w.numbers(), TensorSpec(w.shape(), t)));
  }
  return all;
}

// |got - want| <= tolerance max(scale, |want|), in every element.
void expect_close(const Tensor& got, const std::vector<double>& w, double tolerance, double scale,
                  const std::string& where) {
  const std::vector<double> g = test::to_doubles(got);
  ASSERT_EQ(g.size(), w.size()) << where;
  for (size_t i = 0; i < g.size(); ++i) {
    EXPECT_LE(std::abs(g[i] - w[i]), tolerance * std::max(scale, std::abs(w[i])))
        << where << ", element " << i << ": " << g[i] << " and not " << w[i];
  }
}

// A framework's name for a state of ours; empty if the case has none.
std::string name_of(const std::string& ours, const GoldenFile& states) {
  static const std::map<std::string, std::vector<const char*>> names{
      {"velocity", {"momentum_buffer", "momentums", "momentum"}},
      {"mean", {"exp_avg", "grad_avg", "m", "average_gradients", "mg", "momentums"}},
      {"mean_square", {"exp_avg_sq", "square_avg", "v", "velocities", "rms"}}};
  for (const char* name : names.at(ours)) {
    if (states.contains(name)) return name;
  }
  return "";
}

class GoldenTest : public testing::TestWithParam<Case> {};

TEST_P(GoldenTest, TenStepsAgree) {
  const Case& p = GetParam();
  const GoldenFile c = golden()[p.section][p.name];
  const bool exact = p.dtype == DType::kF64;
  const double tolerance = exact ? 1e-12 : 1e-5;
  std::vector<Tensor> parameters = initial(p.dtype);
  for (Tensor& w : parameters) w.require_grad();
  const auto optimizer =
      make_optimizer(c["optimizer"].text(), test::arguments_of(c["arguments"].text()), p.convention, parameters);

  for (size_t t = 0; t < c["lr"].numbers().size(); ++t) {
    optimizer->set_learning_rate(c["lr"].numbers()[t]);
    optimizer->step(gradients(t, p.dtype));

    const std::string where = "step " + std::to_string(t);
    expect_close(parameters[0], c["steps"]["a"].row(t), tolerance, exact ? 0 : 1, where + ", a");
    expect_close(parameters[1], c["steps"]["b"].row(t), tolerance, exact ? 0 : 1, where + ", b");
  }

  EXPECT_EQ(optimizer->steps(), 10);
  for (const auto& [name, tensor] : optimizer->state()) {
    const size_t dot = name.find('.');
    if (dot == std::string::npos) continue;
    const std::string theirs = name_of(name.substr(0, dot), c["state"]);
    ASSERT_NE(theirs, "") << name;
    const GoldenFile want = c["state"][theirs][name.substr(dot + 1) == "0" ? "a" : "b"];
    expect_close(tensor, want.numbers(), tolerance, exact ? 0 : 1, name);
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Framework& f : kFrameworks) {
    for (const std::string& name : golden()[f.section].names()) {
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
      const Arguments a = test::arguments_of(golden()[std::string(f.section) + "_defaults"][type].text());
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
