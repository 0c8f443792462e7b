#include "measure/command/values.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <regex>

#include "core/runtime.h"
#include "dispatch/policy.h"
#include "dispatch/select.h"
#include "models/network.h"

namespace plumb::command {

using detail::in_quotes;

std::string any_of(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i];
  return text;
}

size_t place_of(const std::string& name, const std::vector<std::string>& names) {
  const auto it = std::ranges::find(names, name);
  PLUMB_CHECK(it != names.end(), "{} is unknown; use {}", in_quotes(name), any_of(names));
  return static_cast<size_t>(it - names.begin());
}

std::vector<std::string> between_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

static double number(const std::string& text, bool takes_zero) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = end == text.data() + text.size() && error != std::errc::invalid_argument;
  PLUMB_CHECK(is_number, "{} is not a number", in_quotes(text));
  // Beyond double's range, strtod gives 0 or infinity; the checks below refuse numbers beyond float's range.
  if (error != std::errc()) value = std::strtod(text.c_str(), nullptr);
  const bool is_word = error == std::errc() && !std::isfinite(value);
  PLUMB_CHECK(!is_word, "{} is not a finite number", in_quotes(text));
  constexpr double kMost = std::numeric_limits<float>::max(), kLeast = std::numeric_limits<float>::min();
  PLUMB_CHECK(std::fabs(value) <= kMost, "{} is too large; use at most 3.4e38", in_quotes(text));
  // Decided by digits, since a processor that flushes denormals takes small numbers for 0.
  const bool is_zero = text.find_first_of("123456789") >= text.find_first_of("eE");
  PLUMB_CHECK(is_zero || std::fabs(value) >= kLeast, "{} is too small; use {}at least 1.2e-38", in_quotes(text),
              takes_zero ? "0, or " : "");
  return value;
}

double finite_number(const std::string& text) { return number(text, true); }

double positive_number(const std::string& text) {
  const double value = number(text, false);
  PLUMB_CHECK(value > 0, "{} is too small; use a number above 0", text);
  return value;
}

double nonnegative_number(const std::string& text) {
  const double value = finite_number(text);
  PLUMB_CHECK(value >= 0, "{} is too small; use a number of at least 0", text);
  return value;
}

std::vector<std::string> model_choices() {
  std::vector<std::string> names = models::network_names();
  names.push_back("vgg");
  return names;
}

const std::vector<std::string>& algorithm_names() {
  static const std::vector<std::string> names{"measured", "heuristic", "heuristic_b", "fallback", "deterministic",
                                              "direct",   "winograd",  "cudnn",       "cublaslt"};
  return names;
}

namespace {
bool is_engine(const std::string& algorithm) {
  static const std::regex pattern(
      "cudnn_e[0-9]{1,3}(_[0-9]{1,3})?(_b|_fallback)?(_krsc|_c[0-9]+)*(_then_[a-z]+)*"
      "|cublaslt(_a[0-9]+(_[a-z][0-9]+)*)?(_then_[a-z]+)*");
  constexpr size_t kMost = 200;  // for each letter it calls itself
  return algorithm.size() <= kMost && std::regex_match(algorithm, pattern);
}
}  // namespace

std::string to_string(const KernelChoice& c) {
  if (c.algorithm) return std::string(algorithm_name(c.algorithm));
  switch (c.search) {
    case Search::kMeasured: return "measured";
    case Search::kHeuristic: return "heuristic";
    case Search::kHeuristicB: return "heuristic_b";
    case Search::kFallback: return "fallback";
    case Search::kDeterministic: return "deterministic";
  }
  return "";
}

std::string whose(const KernelChoice& c) { return message("{} kernels", c.set); }

KernelChoice kernel_choice(const std::string& name) {
  PLUMB_CHECK(is_engine(name) || std::ranges::count(algorithm_names(), name),
              "{} is unknown; use {}, or an engine, cudnn_e38", in_quotes(name), any_of(algorithm_names()));
  for (const Search search :
       {Search::kMeasured, Search::kHeuristic, Search::kHeuristicB, Search::kFallback, Search::kDeterministic}) {
    if (name == to_string(KernelChoice{.search = search})) return {.search = search};
  }
  return {.algorithm = register_algorithm(name)};
}

Policy policy_of(const KernelChoice& kernels, training::Precision precision) {
  Policy policy = detail::ctx.policy;
  policy.search = kernels.search;
  policy.algorithm = kernels.algorithm;
  policy.kernels = kernels.set;
  policy.math = math_of(precision);
  return policy;
}

bool has_tensor_cores(Device device) { return !device.is_cpu() && runtime_of(device).properties().is_gpu(); }

void check_device(Device device, const KernelChoice& kernels, training::Precision precision) {
  if (has_tensor_cores(device)) return;
  PLUMB_CHECK(math_of(precision) != MathMode::kTf32, "--dtype {}: {} has no tensor cores; use f32 or bf16", precision,
              device);
  const std::string algorithm = to_string(kernels);
  PLUMB_CHECK(!is_of_family(algorithm, "cudnn") && !is_of_family(algorithm, "cublaslt"),
              "--algorithm {}: {} has no such kernels; they are a GPU's", algorithm, device);
}

void check_algorithm(const KernelChoice& kernels, const std::string& model) {
  const std::string algorithm = to_string(kernels);
  PLUMB_CHECK(!kernels.algorithm || detail::was_chosen(algorithm),
              "--algorithm {}: no kernel of {} has such an algorithm; plumb {} shows those that there are", algorithm,
              model, is_engine(algorithm) ? "plan" : "layout");
}

}  // namespace plumb::command
