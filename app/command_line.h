// The command line of a program. CLI11, which takes seconds to compile, is behind it in one source.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace plumb::app {

/// Makes of the text of a value the text that is taken instead; throws what is wrong with it.
using Reading = std::function<std::string(const std::string&)>;

/// An option that was just added, and what else holds of it.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  const Option& required() const;
  const Option& read_by(const Reading& reading) const;
  /// The help shows the value that it has now, or this text instead.
  const Option& with_default() const;
  const Option& with_default(const std::string& text) const;
  /// Several values stand between commas.
  const Option& between_commas() const;

 private:
  CLI::Option* option_;
};

/// What a program or a subcommand is told. Copies are the same command line; subcommands end with their program's.
class CommandLine {
 public:
  CommandLine(const char* about, const char* program);

  /// An option "--name VALUE", or the argument "name". T is std::string, int, int64_t, uint64_t, an
  /// std::optional<double>, a double or std::vector<std::string>, and the value outlives the command line.
  template <class T>
  Option add(const std::string& name, T& value, const std::string& about = "") const;
  /// The same, whose value goes to a function as soon as it is read.
  Option add_taken(const std::string& name, const std::function<void(int)>& take, const std::string& about) const;
  void add_flag(const std::string& name, bool& value, const std::string& about) const;
  /// A subcommand; calling `work` is what it does when it was named.
  CommandLine subcommand(const char* name, const char* about) const;
  void calls(const std::function<void()>& work) const;

  /// The end of the help.
  void footer(const std::string& text) const;
  /// --version prints this text.
  void version(const std::string& text) const;
  /// Words that are no option of this program's are no error, and remain.
  void allow_others() const;
  std::vector<std::string> others() const;
  /// Whether an option was given.
  bool has(const std::string& option) const;

  /// Parses a command line, which runs the work of its subcommand. Throws one sentence for whatever is wrong with it:
  /// an option that is unknown, is given twice, or has an empty value; a second subcommand. Returns false when it asked
  /// for help or for the version, which is printed then.
  bool parse(int argc, char** argv) const;
  /// How many subcommands were named.
  size_t called() const;

 private:
  explicit CommandLine(std::shared_ptr<CLI::App> app) : app_(std::move(app)) {}
  std::shared_ptr<CLI::App> app_;
};

/// "CLI11 2.1.2".
std::string parser_version();

/// What main() returns: the status of `work`, or 2 and one sentence behind the program's name for an error. Nothing is
/// lost in silence: a standard output that cannot be written is an error, and so is a file that grows too large.
int run_program(const char* program, const std::function<int()>& work);

}  // namespace plumb::app
