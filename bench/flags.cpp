#include "bench/flags.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "measure/command/values.h"

namespace plumb::bench {

using detail::in_quotes;
namespace {

void check_value(const std::string& name, const std::string& value) {
  static const std::map<std::string, std::vector<std::string>> choices{
      {"benchmark_format", {"console", "json", "csv"}},
      {"benchmark_color", {"auto", "true", "false"}},
      {"benchmark_time_unit", {"ns", "us", "ms", "s"}}};
  if (const auto it = choices.find(name); it != choices.end()) command::place_of(value, it->second);
  PLUMB_CHECK(name != "benchmark_out_format" || value == "json", "only json is supported");
  if (name == "benchmark_repetitions") command::whole_number<int>(value, 1);
  if (name == "benchmark_min_time" || name == "benchmark_min_warmup_time") {
    const bool has_unit = value.ends_with('s') || value.ends_with('x');  // newer versions take "2s", and "10x" for runs
    command::nonnegative_number(value.substr(0, value.size() - has_unit));
  }
}

}  // namespace

std::string flag(const std::vector<std::string>& flags, const std::string& name, const std::string& otherwise) {
  std::string value = otherwise;
  for (const std::string& f : flags) {
    if (f == "--" + name) value = "true";
    if (f.starts_with("--" + name + "=")) value = f.substr(name.size() + 3);
  }
  return value;
}

void check_flags(const std::vector<std::string>& flags, const std::vector<command::NamedFile>& inputs) {
  for (const std::string& word : flags) {
    PLUMB_CHECK(word.starts_with("--benchmark_"), "{} is not expected; --help lists what there is", in_quotes(word));
    const size_t end = std::min(word.find('='), word.size());
    const std::string name = word.substr(2, end - 2);
    try {
      check_value(name, word.substr(std::min(end + 1, word.size())));
    } catch (const Error& e) {
      fail("--{}: {}", name, e.what());
    }
  }
  command::check_outputs({{"--benchmark_out", flag(flags, "benchmark_out", "")}}, inputs);
}

void initialize(char* program, std::vector<std::string> flags) {
  std::vector<char*> words{program};
  for (std::string& word : flags) words.push_back(word.data());
  int count = static_cast<int>(words.size());
  words.push_back(nullptr);
  benchmark::Initialize(&count, words.data());
  PLUMB_CHECK(count == 1, "{} is not expected; --help lists what there is", in_quotes(words[1]));
}

Filter::Filter(const std::string& text) : is_negated_(text.starts_with('-')) {
  const std::string pattern = text.empty() || text == "all" ? "." : text.substr(is_negated_);
  PLUMB_CHECK(regcomp(&regex_, pattern.c_str(), REG_EXTENDED | REG_NOSUB) == 0,
              "--benchmark_filter: {} is no regular expression", in_quotes(text));
}

Filter::~Filter() { regfree(&regex_); }

bool Filter::selects(const std::string& path) const {
  return (regexec(&regex_, path.c_str(), 0, nullptr, 0) == 0) != is_negated_;
}

int error_of_flush(std::ostream& file) {
  if (file.flush()) return 0;
  return errno ? errno : EIO;  // of the write before, if that had failed already
}

void check_flushed(const std::string& file, int error) {
  PLUMB_CHECK(error == 0, "--benchmark_out {} cannot be written: {}", file, std::strerror(error));
}

void check_selected(const std::vector<std::string>& paths, const std::string& filter) {
  PLUMB_CHECK(!paths.empty(), "--benchmark_filter: no row matches {}", in_quotes(filter));
}

}  // namespace plumb::bench
