// The subcommands of plumb. Each adds itself to the command line and runs when it was named.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <string>

#include "core/error.h"

namespace plumb::app {

void add_train(CLI::App& app);
void add_eval(CLI::App& app);
void add_info(CLI::App& app);
void add_layout(CLI::App& app);

/// The decimal whole number that a text is; throws if it is none, or does not fit into a T.
template <class T>
T whole_number(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = end == text.data() + text.size() && error != std::errc::invalid_argument;
  PLUMB_CHECK(whole, "\"{}\" is not a whole number{}", text, std::is_unsigned_v<T> ? " of at least 0" : "");
  PLUMB_CHECK(error == std::errc(), "{} does not fit into {} bits", text, 8 * sizeof(T));
  return value;
}

/// For Option::transform: takes what is a whole_number<T>, and refuses the rest. By itself CLI11 reads 010 as octal,
/// wraps what is below 0 and cuts what is too large.
template <class T>
CLI::Validator as_whole() {
  const auto why_not = [](std::string& text) {
    try {
      text = std::to_string(whole_number<T>(text));
      return std::string();
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  return CLI::Validator(why_not, "");
}

}  // namespace plumb::app
