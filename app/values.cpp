#include "app/values.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <regex>

#include "core/convention.h"
#include "core/layout.h"
#include "core/runtime.h"
#include "dispatch/policy.h"
#include "dispatch/select.h"
#include "models/network.h"

namespace plumb::app {

using detail::in_quotes;

std::string any_of(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i];
  return text;
}

void check_choice(const std::string& value, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (value == name) return;
  }
  fail("{} is unknown; use {}", in_quotes(value), any_of(names));
}

double finite_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = end == text.data() + text.size() && error != std::errc::invalid_argument;
  PLUMB_CHECK(is_number, "{} is not a number", in_quotes(text));
  // Beyond double, strtod gives 0 or infinity; beyond float, kernels would.
  if (error != std::errc()) value = std::strtod(text.c_str(), nullptr);
  const bool is_word = error == std::errc() && !std::isfinite(value);
  PLUMB_CHECK(!is_word, "{} is not a finite number", in_quotes(text));
  constexpr double kMost = std::numeric_limits<float>::max(), kLeast = std::numeric_limits<float>::min();
  PLUMB_CHECK(std::fabs(value) <= kMost, "{} is too large; use at most 3.4e38", in_quotes(text));
  // By its digits: a processor that flushes takes small numbers for 0.
  const bool is_zero = text.find_first_of("123456789") >= text.find_first_of("eE");
  PLUMB_CHECK(is_zero || std::fabs(value) >= kLeast, "{} is too small; use 0, or at least 1.2e-38", in_quotes(text));
  return value;
}

double nonnegative_number(const std::string& text) {
  const double value = finite_number(text);
  PLUMB_CHECK(value >= 0, "{} is too small; use a number of at least 0", text);
  return value;
}

std::vector<double> finite_numbers(const std::string& text) {
  std::vector<double> all;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    all.push_back(finite_number(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return all;
}

int64_t batch_size(const std::string& text) { return whole_number<int64_t>(text, 1, INT32_MAX); }

std::vector<std::string> model_choices() {
  std::vector<std::string> names = models::network_names();
  names.push_back("vgg");
  return names;
}

std::vector<std::string> layout_choices() {
  std::vector<std::string> names;
  for (const Layout l : kPublicLayouts) names.push_back(to_string(l));
  return names;
}

std::vector<std::string> convention_choices() {
  std::vector<std::string> names;
  for (const Convention c : {Convention::kPyTorch, Convention::kKeras, Convention::kTensorFlow1}) {
    names.emplace_back(to_string(c));
  }
  return names;
}

const std::vector<std::string>& algorithm_names() {
  static const std::vector<std::string> names{"measured", "heuristic", "direct",       "winograd",
                                              "cudnn",    "cublaslt",  "deterministic"};
  return names;
}

namespace {
bool is_engine(const std::string& algorithm) {
  static const std::regex pattern("cudnn_e[0-9]{1,3}(_[0-9]{1,3})?(_fallback)?|cublaslt_a[0-9]+(_[a-z][0-9]+)*");
  return std::regex_match(algorithm, pattern);
}
}  // namespace

void check_algorithm_name(const std::string& algorithm) {
  const auto& names = algorithm_names();
  PLUMB_CHECK(is_engine(algorithm) || std::find(names.begin(), names.end(), algorithm) != names.end(),
              "{} is unknown; use {}, or an engine, cudnn_e38", in_quotes(algorithm), any_of(names));
}

bool names_kernels(const std::string& algorithm) {
  return algorithm != "heuristic" && algorithm != "deterministic" && algorithm != "measured";
}

void check_algorithm(const std::string& algorithm, Device device) {
  const bool is_vendors = is_of_family(algorithm, "cudnn") || is_of_family(algorithm, "cublaslt");
  PLUMB_CHECK(!is_vendors || has_tensor_cores(device), "--algorithm {}: {} has no such kernels; they are a GPU's",
              algorithm, device);
}

void check_engine(const std::string& algorithm, const std::string& model) {
  PLUMB_CHECK(!is_engine(algorithm) || detail::was_offered(algorithm),
              "--algorithm {}: no kernel of {} has such an algorithm; plumb plan shows those that there are", algorithm,
              model);
}

const std::vector<std::string>& precision_names() {
  static const std::vector<std::string> names{"f32", "tf32", "bf16"};
  return names;
}

Precision precision_of(const std::string& dtype) {
  check_choice(dtype, precision_names());
  return {dtype == "bf16" ? DType::kBf16 : DType::kF32, dtype == "tf32" ? MathMode::kTf32 : MathMode::kStrict};
}

bool has_tensor_cores(Device device) { return !device.is_cpu() && runtime_of(device).properties().is_gpu(); }

void check_precision(const std::string& dtype, Device device) {
  PLUMB_CHECK(has_tensor_cores(device) || precision_of(dtype).math != MathMode::kTf32,
              "--dtype {}: {} has no tensor cores; use f32 or bf16", dtype, device);
}

Policy choice_of(const std::string& algorithm, const std::string& dtype) {
  check_algorithm_name(algorithm);
  Policy policy = detail::ctx.policy;
  policy.math = precision_of(dtype).math;
  policy.algorithm = 0;
  policy.search = algorithm == "heuristic"       ? Search::kHeuristic
                  : algorithm == "deterministic" ? Search::kDeterministic
                                                 : Search::kMeasured;
  if (names_kernels(algorithm)) policy.algorithm = register_algorithm(algorithm);
  return policy;
}

}  // namespace plumb::app
