// The values of options: how texts become enumerators and numbers, and what is wrong with others.
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

/// The names of values, as they are printed.
template <class Values>
std::vector<std::string> names_of(const Values& values) {
  std::vector<std::string> names;
  for (const auto& v : values) names.push_back(message("{}", v));
  return names;
}
/// "a, b or c".
std::string any_of(const std::vector<std::string>& names);
/// The one of these names; throws "x" is unknown; use a, b or c.
size_t place_of(const std::string& name, const std::vector<std::string>& names);
/// The value of that name among these; throws the same.
template <class Values>
auto named(const std::string& name, const Values& values) {
  return *std::next(std::begin(values), static_cast<std::ptrdiff_t>(place_of(name, names_of(values))));
}

/// The parts of a text between its commas.
std::vector<std::string> between_commas(const std::string& text);

/// The decimal whole number that a text is; throws if it is none, does not fit into a T or is not in [least, most].
template <class T>
T whole_number(const std::string& text, T least, T most = std::numeric_limits<T>::max()) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = end == text.data() + text.size() && error != std::errc::invalid_argument;
  PLUMB_CHECK(whole, "{} is not a whole number of at least {}", detail::in_quotes(text), least);
  PLUMB_CHECK(error == std::errc(), "{} does not fit into {} bits", text, 8 * sizeof(T));
  PLUMB_CHECK(value >= least, "{} is too small; use at least {}", value, least);
  PLUMB_CHECK(value <= most, "{} is too large; use at most {}", value, most);
  return value;
}
/// The number that a text is; throws if it is none, or not finite in f32, or not 0 but 0 in f32.
double finite_number(const std::string& text);
/// The same; throws also if it is negative.
double nonnegative_number(const std::string& text);
/// Images in a batch: more than a machine could ever hold.
inline constexpr int64_t kMostImages = std::numeric_limits<int32_t>::max();

/// The names of networks that a command takes, with the alias "vgg".
std::vector<std::string> model_choices();

/// What --algorithm and --kernels say: how kernels are chosen, among which first, and whose they may be.
struct KernelChoice {
  Search search = Search::kMeasured;
  uint16_t algorithm = 0;  ///< 0, or of register_algorithm: a family or an engine
  KernelSet set = KernelSet::kAll;
};
/// What --algorithm called it.
std::string to_string(const KernelChoice& c);
/// Whose kernels a result is of, for people: "all kernels" or "vendor kernels".
std::string whose(const KernelChoice& c);
/// The names that kernel_choice lists.
const std::vector<std::string>& algorithm_names();
/// The inverse of to_string. Throws unless it is one of algorithm_names, or names an engine of cuDNN ("cudnn_e38",
/// "cudnn_e38_1", "cudnn_e1_fallback") or an algorithm of cuBLASLt ("cublaslt_a66_t20_s7_k1"). Which there are, only
/// the libraries know, when they plan.
KernelChoice kernel_choice(const std::string& name);
/// The policy of all that, on the thread's device by its threads.
Policy policy_of(const KernelChoice& kernels, training::Precision precision = training::Precision::kF32);

/// Whether a device is a GPU, which has products in tf32.
bool has_tensor_cores(Device device);
/// Throws where a device does not have what was chosen: tf32, and the kernels of cuDNN and cuBLASLt, are a GPU's.
void check_device(Device device, const KernelChoice& kernels,
                  training::Precision precision = training::Precision::kF32);
/// After the first work: throws if an algorithm of cuDNN or cuBLASLt was chosen that was offered for none of it.
void check_engine(const KernelChoice& kernels, const std::string& model);

}  // namespace plumb::command
