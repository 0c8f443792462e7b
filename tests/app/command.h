// The plumb command, run as a user runs it, in a folder of the test's own.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "tests/support/folder.h"
#include "tests/support/json.h"

namespace plumb::test {

/// What a command left behind.
struct Outcome {
  int status = -1;       ///< the exit status; less than 0: it was ended by that signal
  std::string out, err;  ///< what it wrote to its standard streams
};
std::ostream& operator<<(std::ostream& out, const Outcome& outcome);

/// What is unlike usual around a command.
struct Surroundings {
  uint64_t largest_file = 0;  ///< bytes after which a file cannot grow: a full disk that needs no disk; 0: no limit
  std::string output{};       ///< a file or device in place of the pipe behind the standard output
  std::string variable{};     ///< "NAME=VALUE" in the environment
};

/// Whether a command ended with status 2 and one sentence on the standard error, which contains `part`.
testing::AssertionResult is_refusal(const Outcome& outcome, const std::string& part);

/// A test with a folder of its own, in which commands run, and which is removed with all in it at the end.
class CommandTest : public ::testing::Test {
 protected:
  using Bytes = std::string;

  /// Runs `plumb LINE`, split at spaces; '' is an empty word. File names are relative to the folder.
  Outcome run(const std::string& line, const Surroundings& surroundings = {}) const;
  /// Must exit with 0 and leave the standard error empty.
  testing::AssertionResult works(const std::string& line, const Surroundings& surroundings = {}) const;
  /// Must be a refusal that printed no result and left the folder as it was.
  testing::AssertionResult refuses(const std::string& line, const std::string& part,
                                   const Surroundings& surroundings = {}) const;

  /// The report of a command that must work, from its --json.
  Json report_of(const std::string& line) const;
  Json read_json(const std::string& name) const { return parse_json(read(name)); }
  Bytes read(const std::string& name) const { return content(path(name)); }
  void write(const std::string& name, const Bytes& bytes) const;
  std::filesystem::path path(const std::string& name) const { return folder_ / name; }
  /// All that is in the folder: when each file was last written, and its size.
  std::map<std::string, std::pair<std::filesystem::file_time_type, uintmax_t>> files() const;

 private:
  const Folder own_folder_;
  const std::filesystem::path folder_ = own_folder_.path();
};

/// A training run of lenet that takes a moment: two steps on synthetic images, by kernels that need no measuring.
inline const std::string kShortRun = "train lenet --limit 16 --batch 8 --layout nchw --algorithm heuristic --epochs 1 ";

}  // namespace plumb::test
