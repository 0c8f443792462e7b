// Options that several programs share.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "measure/command/command_line.h"
#include "measure/command/values.h"

namespace plumb::command {

/// Adds an option that takes one of `values` by its name; the help lists the names after `about`. T is the type of the
/// values, or an optional of it.
template <class T, class Values>
void add_choice(const CommandLine& line, const std::string& option, T& value, const Values& values, About about) {
  about.text += any_of(names_of(values));
  if constexpr (requires { value.has_value(); }) {
    if (value) about.otherwise = message("{}", *value);
  } else {
    about.otherwise = message("{}", value);
  }
  const std::vector all(std::begin(values), std::end(values));
  line.add(
      option, [&value, all](const std::string& text) { value = named(text, all); }, about);
}
/// Adds an option that takes several of `values`, separated by commas. What is named twice is taken once.
template <class T, class Values>
void add_choices(const CommandLine& line, const std::string& option, std::vector<T>& chosen, const Values& values,
                 About about) {
  about.text += any_of(names_of(values));
  for (const std::string& name : names_of(chosen)) about.otherwise += (about.otherwise.empty() ? "" : ",") + name;
  const std::vector<T> all(std::begin(values), std::end(values));
  const auto take = [&chosen, all](const std::string& text) {
    chosen.clear();
    for (const std::string& name : between_commas(text)) {
      if (const T one = named(name, all); !std::ranges::count(chosen, one)) chosen.push_back(one);
    }
  };
  line.add(option, take, about);
}
/// Adds an option that takes a decimal whole number from `least` to `most`. The help shows the current value.
template <class T>
void add_whole(const CommandLine& line, const std::string& option, T& value, const std::string& about, T least,
               T most = std::numeric_limits<T>::max()) {
  const auto take = [&value, least, most](const std::string& text) { value = whole_number<T>(text, least, most); };
  line.add(option, take, {about, value < least ? "" : std::to_string(value), "INT"});
}
/// Adds an option that takes a nonnegative_number. T is double, or an optional of it.
template <class T>
void add_nonnegative(const CommandLine& line, const std::string& option, T& value, const std::string& about) {
  line.add(option, [&value](const std::string& text) { value = nonnegative_number(text); }, {about, "", "FLOAT"});
}

/// The required argument "model".
void add_model_option(const CommandLine& line, std::string& model);
/// --batch, from 1 to kMostImages.
void add_batch_option(const CommandLine& line, int64_t& batch, const char* about);
/// --limit, 0 for all.
void add_limit_option(const CommandLine& line, int64_t& limit, const char* about);
/// --algorithm and --kernels.
void add_kernel_options(const CommandLine& line, KernelChoice& kernels);
/// --workspace; limits the workspace of kernels (set_workspace_limit) as soon as it is read.
void add_workspace_option(const CommandLine& line);
/// --device; a device of this process.
void add_device_option(const CommandLine& line, Device& device, const char* about);
/// --dtype; the precision of training.
void add_dtype_option(const CommandLine& line, training::Precision& precision);
/// --threads; sets the number of threads as soon as it is read.
void add_threads_option(const CommandLine& line);

}  // namespace plumb::command
