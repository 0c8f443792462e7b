// The flags of Google Benchmark's, checked before it sees them. By itself it shows its usage and ends well where a
// value is unknown, and finds out late what cannot be written.
#pragma once

#include <regex.h>

#include <ostream>
#include <string>
#include <vector>

#include "measure/command/report.h"

namespace plumb::bench {

/// What the help of the programs says of these flags.
inline constexpr char kAboutFlags[] =
    "Google Benchmark's own options (--benchmark_filter=REGEX, --benchmark_list_tests, --benchmark_out=FILE, ...) "
    "work as everywhere.";

/// The value of a flag, the last one given; "true" for one without.
std::string flag(const std::vector<std::string>& flags, const std::string& name, const std::string& otherwise);
/// Throws a sentence for a word that is no flag of Google Benchmark's, a value that it would not take, and a file that
/// could not be written later or is one of the inputs.
void check_flags(const std::vector<std::string>& flags, const std::vector<command::NamedFile>& inputs = {});
/// Hands the flags to Google Benchmark, which keeps the pointer `program`. Throws a sentence for one that is unknown.
void initialize(char* program, std::vector<std::string> flags);

/// Flushes the file of --benchmark_out: 0, or as in errno why it could not be written. For a reporter's Finalize, after
/// which Google Benchmark closes it.
int error_of_flush(std::ostream& file);
/// Throws, naming the file, if there was such an error.
void check_flushed(const std::string& file, int error);

/// What --benchmark_filter selects: the paths in which an extended regular expression is found, or with '-' before it
/// the others; all for "" and "all".
class Filter {
 public:
  /// Throws a sentence if the text is no regular expression.
  explicit Filter(const std::string& text);
  ~Filter();
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;
  bool selects(const std::string& path) const;

 private:
  bool is_negated_;
  regex_t regex_;
};
/// Throws a sentence if a filter selected nothing.
void check_selected(const std::vector<std::string>& paths, const std::string& filter);

}  // namespace plumb::bench
