// The values of options: converts texts to enumerators and numbers, and says what is wrong with a text.
#pragma once

#include <charconv>
#include <limits>
#include <ranges>
#include <string>
#include <vector>

#include "core/context.h"
#include "core/error.h"
#include "core/file.h"
#include "train/precision.h"

namespace plumb::command {

/// The names of values as to_string gives them.
template <class Values>
std::vector<std::string> names_of(const Values& values) {
  std::vector<std::string> names;
  for (const auto& v : values) names.push_back(message("{}", v));
  return names;
}
/// "a, b or c".
std::string any_of(const std::vector<std::string>& names);
/// The index of this name; throws "x" is unknown; use a, b or c.
size_t place_of(const std::string& name, const std::vector<std::string>& names);
/// The value with this name; throws as place_of does.
template <class Values>
auto named(const std::string& name, const Values& values) {
  return *std::next(std::begin(values), static_cast<std::ptrdiff_t>(place_of(name, names_of(values))));
}

/// The parts of a text that commas separate.
std::vector<std::string> between_commas(const std::string& text);

/// The decimal whole number in a text; throws if it is not one, does not fit in a T or is not in [least, most].
template <class T>
T whole_number(const std::string& text, T least, T most = std::numeric_limits<T>::max()) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = end == text.data() + text.size() && error != std::errc::invalid_argument;
  PLUMB_CHECK(whole, "{} is not a whole number of at least {}", detail::in_quotes(text), least);
  PLUMB_CHECK(error == std::errc(), "{} is too {}; use {} {}", detail::in_quotes(text),
              text.starts_with('-') ? "small" : "large", text.starts_with('-') ? "at least" : "at most",
              text.starts_with('-') ? least : most);
  PLUMB_CHECK(value >= least, "{} is too small; use at least {}", value, least);
  PLUMB_CHECK(value <= most, "{} is too large; use at most {}", value, most);
  return value;
}
/// The number in a text; throws if it is not one, not finite in f32, or not 0 but 0 in f32.
double finite_number(const std::string& text);
/// The same; throws also if it is negative.
double nonnegative_number(const std::string& text);
/// The same; throws also if it is not above 0.
double positive_number(const std::string& text);
/// The largest batch, in images: more than any machine could hold.
inline constexpr int64_t kMostImages = std::numeric_limits<int32_t>::max();

/// The names of networks that a command accepts, including the alias "vgg".
std::vector<std::string> model_choices();

/// The values of --algorithm and --kernels: how kernels are chosen, which come first, and whose may run.
struct KernelChoice {
  Search search = Search::kMeasured;
  uint16_t algorithm = 0;  ///< 0, or a number of register_algorithm: a family or an engine
  KernelSet set = KernelSet::kAll;
};
/// The name that --algorithm has for it.
std::string to_string(const KernelChoice& c);
/// Whose kernels a result is of, for people: "all kernels" or "vendor kernels".
std::string whose(const KernelChoice& c);
/// The names that kernel_choice accepts and lists.
const std::vector<std::string>& algorithm_names();
/// The inverse of to_string. Throws unless the name is one of algorithm_names, an engine of cuDNN ("cudnn_e38",
/// "cudnn_e38_1", "cudnn_e1_fallback") or an algorithm of cuBLASLt ("cublaslt_a66_t20_s7_k1"). Which of the latter
/// exist, the libraries tell only when they plan.
KernelChoice kernel_choice(const std::string& name);
/// The policy for these choices, with the thread's device and number of threads.
Policy policy_of(const KernelChoice& kernels, training::Precision precision = training::Precision::kF32);

/// Whether a device is a GPU, and so has products in tf32.
bool has_tensor_cores(Device device);
/// Throws if the device lacks what was chosen: only a GPU has tf32 and the kernels of cuDNN and cuBLASLt.
void check_device(Device device, const KernelChoice& kernels,
                  training::Precision precision = training::Precision::kF32);
/// Call after the first work: throws if an algorithm was chosen by name, and none of its kernels has it.
void check_algorithm(const KernelChoice& kernels, const std::string& model);

}  // namespace plumb::command
