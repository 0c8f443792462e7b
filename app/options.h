// What the options of the programs share.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "app/values.h"

namespace plumb::app {

/// A validator of a function from the text of a value to a text that is taken instead, which throws if it is refused.
CLI::Validator checked(std::function<std::string(const std::string&)> read);
/// For Option::transform: takes what is a whole_number<T>. By itself CLI11 reads 010 as octal, wraps what is below 0
/// and cuts what is too large.
template <class T>
CLI::Validator whole_from(T least, T most = std::numeric_limits<T>::max()) {
  return checked([=](const std::string& text) { return std::to_string(whole_number<T>(text, least, most)); });
}
/// For Option::transform: takes what is a nonnegative_number.
CLI::Validator nonnegative();

/// An option with one of these values, which its help lists behind `about`.
CLI::Option* add_choice(CLI::App& app, const std::string& option, std::string& value,
                        const std::vector<std::string>& names, const std::string& about);
/// The same for some of these values, between commas.
CLI::Option* add_choices(CLI::App& app, const std::string& option, std::vector<std::string>& values,
                         const std::vector<std::string>& names, const std::string& about);
/// The required argument "model".
void add_model_option(CLI::App& app, std::string& model);
/// --batch, a batch_size.
CLI::Option* add_batch_option(CLI::App& app, int64_t& batch, const char* about);
/// --limit, 0 for all.
void add_limit_option(CLI::App& app, int64_t& limit, const char* about);
/// --algorithm, a name for choice_of.
void add_algorithm_option(CLI::App& app, std::string& algorithm);
/// --dtype of training: f32 or bf16.
void add_dtype_option(CLI::App& app, std::string& dtype);
/// --threads, which sets the number of threads as soon as it is read.
void add_threads_option(CLI::App& app);

}  // namespace plumb::app
