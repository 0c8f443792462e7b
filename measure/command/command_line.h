// The command line of a program. Only its source includes CLI11, which takes seconds to compile.
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

/// An option's entry in the help.
struct About {
  std::string text{};
  std::string otherwise{};    ///< its value if it is left out; empty: `text` names it
  const char* kind = "TEXT";  ///< the kind of its value
  bool is_required = false;
};

/// The command line of a program or a subcommand. Copies share it; a subcommand's is valid as long as its program's.
class CommandLine {
 public:
  CommandLine(const char* about, const char* program);

  /// Takes the text of a value as soon as it is read; throws if the value is wrong.
  using Take = std::function<void(const std::string&)>;
  /// An option "--name VALUE", or the argument "name".
  void add(const std::string& name, const Take& take, const About& about) const;
  /// The same for any text that is not empty. `text` must outlive the command line.
  void add(const std::string& name, std::string& text, const About& about) const;
  /// The same for an option with several values.
  void add_all(const std::string& name, std::vector<std::string>& texts, const About& about) const;
  void add_flag(const std::string& name, bool& value, const std::string& about) const;
  /// Adds a subcommand; its work is set by calls().
  CommandLine subcommand(const char* name, const char* about) const;
  void calls(const std::function<void()>& work) const;

  /// Sets the end of the help.
  void footer(const std::string& text) const;
  /// Sets the text that --version prints.
  void version(const std::string& text) const;
  /// Accepts words that are no option of this program; others() returns them.
  void allow_others() const;
  std::vector<std::string> others() const;
  /// Whether an option was given.
  bool has(const std::string& option) const;

  /// Parses a command line and runs the work of its subcommand. Throws one sentence for any mistake in it: an option
  /// that is unknown, given twice, or has a wrong value; a second subcommand. Returns false if the command line asked
  /// for help or the version, which is then printed.
  bool parse(int argc, char** argv) const;
  /// How many subcommands were given.
  size_t called() const;

 private:
  explicit CommandLine(std::shared_ptr<CLI::App> app) : app_(std::move(app)) {}
  std::shared_ptr<CLI::App> app_;
};

/// "CLI11 2.1.2".
std::string parser_version();

/// Returns what main() must return: the status of `work`, or 2 after an error, with one sentence that begins with the
/// program's name. No failed write goes unnoticed: not to the standard output, nor to a file that grows too large.
int run_program(const char* program, const std::function<int()>& work);

}  // namespace plumb::command
