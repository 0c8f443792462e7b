// The values of options: texts that are checked as they are read, and choices that are listed once.
#pragma once

#include <charconv>
#include <limits>
#include <string>
#include <vector>

#include "core/context.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/file.h"

namespace plumb::app {

/// "a, b or c".
std::string any_of(const std::vector<std::string>& names);
/// Throws "x" is unknown; use a, b or c.
void check_choice(const std::string& value, const std::vector<std::string>& names);

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
/// The finite numbers between commas.
std::vector<double> finite_numbers(const std::string& text);

/// A number of images in a batch: at least 1, and not more than a machine could ever hold.
int64_t batch_size(const std::string& text);

/// The names of networks that a command takes, with the alias "vgg".
std::vector<std::string> model_choices();
/// The public layouts by name.
std::vector<std::string> layout_choices();
/// The conventions by name.
std::vector<std::string> convention_choices();
/// The names of --algorithm: ways to choose kernels, and algorithms to insist on.
const std::vector<std::string>& algorithm_names();
/// Throws unless it is one of these, or names an engine of cuDNN ("cudnn_e38", "cudnn_e38_1", "cudnn_e1_fallback")
/// or an algorithm of cuBLASLt ("cublaslt_a66_t20_s7_k1"). Which there are, only the libraries know, when they plan.
void check_algorithm_name(const std::string& algorithm);
/// What --dtype says: the dtype of activations, and how products of f32 are computed.
struct Precision {
  DType activations = DType::kF32;
  MathMode math = MathMode::kStrict;
};
/// The names of --dtype: f32 (strict), tf32, bf16.
const std::vector<std::string>& precision_names();
Precision precision_of(const std::string& dtype);
/// Whether a device is a GPU, which has products in tf32.
bool has_tensor_cores(Device device);
/// Throws where a device does not have it: tf32 is a GPU's.
void check_precision(const std::string& dtype, Device device);
/// Whether a name of --algorithm is one of kernels, and not of a way to choose them.
bool names_kernels(const std::string& algorithm);
/// Throws where a device has no library of whose kernels the algorithm is one: cuDNN and cuBLASLt are a GPU's.
void check_algorithm(const std::string& algorithm, Device device);
/// After the first work by an algorithm: throws if it names one of cuDNN or cuBLASLt that was offered for none of it.
void check_engine(const std::string& algorithm, const std::string& model);
/// The policy of kernels behind such a name; throws on another.
Policy choice_of(const std::string& algorithm, const std::string& dtype = "f32");

}  // namespace plumb::app
