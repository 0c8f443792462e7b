// What the options of the programs share.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "app/command_line.h"
#include "app/values.h"

namespace plumb::app {

/// For Option::read_by: takes what is a whole_number<T>. By itself CLI11 reads 010 as octal, wraps what is below 0 and
/// cuts what is too large.
template <class T>
Reading whole_from(T least, T most = std::numeric_limits<T>::max()) {
  return [=](const std::string& text) { return std::to_string(whole_number<T>(text, least, most)); };
}
/// For Option::read_by: takes what is a nonnegative_number.
Reading nonnegative();

/// An option with one of these values, which its help lists behind `about`.
Option add_choice(const CommandLine& line, const std::string& option, std::string& value,
                  const std::vector<std::string>& names, const std::string& about);
/// The same for some of these values, between commas.
Option add_choices(const CommandLine& line, const std::string& option, std::vector<std::string>& values,
                   const std::vector<std::string>& names, const std::string& about);
/// The required argument "model".
void add_model_option(const CommandLine& line, std::string& model);
/// --batch, a batch_size.
Option add_batch_option(const CommandLine& line, int64_t& batch, const char* about);
/// --limit, 0 for all.
void add_limit_option(const CommandLine& line, int64_t& limit, const char* about);
/// --algorithm, a name for choice_of.
void add_algorithm_option(const CommandLine& line, std::string& algorithm);
/// --workspace, which limits what kernels ask for (set_workspace_limit) as soon as it is read.
void add_workspace_option(const CommandLine& line);
/// --device, the name of one that this process has.
void add_device_option(const CommandLine& line, std::string& device, const char* about);
/// --dtype of training, a name for precision_of.
void add_dtype_option(const CommandLine& line, std::string& dtype);
/// --threads, which sets the number of threads as soon as it is read.
void add_threads_option(const CommandLine& line);

}  // namespace plumb::app
