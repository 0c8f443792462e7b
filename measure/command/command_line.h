// The command line of a program. CLI11, which takes seconds to compile, is behind it in one source.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace plumb::command {

/// Throws if the text of a value is empty.
void refuse_empty(const std::string& text);

/// What the help says of an option.
struct About {
  std::string text{};
  std::string otherwise{};    ///< what it is where it is left out; empty: the text says so
  const char* kind = "TEXT";  ///< of a value
  bool is_required = false;
};

/// What a program or a subcommand is told. Copies are the same command line; subcommands end with their program's.
class CommandLine {
 public:
  CommandLine(const char* about, const char* program);

  /// Takes the text of a value as soon as it is read; throws what is wrong with it.
  using Take = std::function<void(const std::string&)>;
  /// An option "--name VALUE", or the argument "name".
  void add(const std::string& name, const Take& take, const About& about) const;
  /// The same for any text that is not empty, which outlives the command line.
  void add(const std::string& name, std::string& text, const About& about) const;
  /// The same for several of them.
  void add_all(const std::string& name, std::vector<std::string>& texts, const About& about) const;
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
  /// an option that is unknown, is given twice, or has a wrong value; a second subcommand. Returns false when it asked
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

}  // namespace plumb::command
