#include "measure/command/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <system_error>

#include "core/context.h"
#include "core/error.h"
#include "core/file.h"
#include "dispatch/machine.h"
#include "kernels/threads.h"

namespace plumb::command {
namespace {

std::vector<CLI::Option*> all_options(CLI::App& app) {
  std::vector<CLI::Option*> all = app.get_options();
  for (CLI::App* subcommand : app.get_subcommands({})) {
    const auto more = all_options(*subcommand);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::string sentence(CLI::App& app, const CLI::ParseError& e) {
  for (const CLI::Option* o : all_options(app)) {
    if (o->get_positional() || o->get_items_expected_max() > 1) continue;
    if (o->count() > 1) return o->get_name() + " was given " + (o->count() == 2 ? "twice" : "several times");
  }
  std::string what = e.what();
  std::replace(what.begin(), what.end(), '\n', ' ');
  if (dynamic_cast<const CLI::ValidationError*>(&e)) return what;
  if (what.find("flag override") != what.npos) return "--" + what.substr(0, what.find(' ')) + " takes no value";
  if (dynamic_cast<const CLI::ExtrasError*>(&e) && app.get_subcommands().empty() && !app.get_subcommands({}).empty()) {
    std::string all;
    for (const CLI::App* subcommand : app.get_subcommands({}))
      all += (all.empty() ? "" : ", ") + subcommand->get_name();
    return detail::in_quotes(app.remaining(true).front()) + " is no subcommand; use " + all + ", or --help";
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&e)) return what.substr(0, what.find(':')) + " needs a value";
  return what + "; --help lists what there is";
}

void check_standard_output() {
  std::cout.flush();
  PLUMB_CHECK(std::fflush(stdout) == 0 && !std::ferror(stdout), "the standard output cannot be written: {}",
              std::strerror(errno));
}

// On a wrong value, the parser names the option.
template <class Value>
void add_taken(CLI::App& app, const std::string& name, const std::function<void(const Value&)>& take,
               const About& about) {
  const auto named = [name, take](const Value& value) {
    try {
      take(value);
    } catch (const Error& e) {
      throw CLI::ValidationError(name, e.what());
    }
  };
  CLI::Option* option = app.add_option_function<Value>(name, named, about.text);
  option->default_str(about.otherwise)->type_name(about.kind)->required(about.is_required);
}

}  // namespace

void refuse_empty(const std::string& text) {
  PLUMB_CHECK(!text.empty(), "its value is empty; give one, or leave it out");
}

CommandLine::CommandLine(const char* about, const char* program) : app_(std::make_shared<CLI::App>(about, program)) {}

void CommandLine::add(const std::string& name, const Take& take, const About& about) const {
  add_taken(*app_, name, take, about);
}
void CommandLine::add(const std::string& name, std::string& text, const About& about) const {
  add(
      name, [&text](const std::string& value) { refuse_empty(value), text = value; }, about);
}
void CommandLine::add_all(const std::string& name, std::vector<std::string>& texts, const About& about) const {
  const std::function<void(const std::vector<std::string>&)> take = [&texts](const auto& values) {
    std::ranges::for_each(values, refuse_empty);
    texts = values;
  };
  add_taken(*app_, name, take, about);
}
void CommandLine::add_flag(const std::string& name, bool& value, const std::string& about) const {
  app_->add_flag(name, value, about)->disable_flag_override()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
}
CommandLine CommandLine::subcommand(const char* name, const char* about) const {
  app_->require_subcommand(0, 1);  // so that the parser names a wrong one
  return CommandLine({std::shared_ptr<CLI::App>(), app_->add_subcommand(name, about)});  // owns nothing
}
void CommandLine::calls(const std::function<void()>& work) const { app_->callback(work); }

void CommandLine::footer(const std::string& text) const { app_->footer(text); }
void CommandLine::version(const std::string& text) const { app_->set_version_flag("--version", text); }
void CommandLine::allow_others() const { app_->allow_extras(); }
std::vector<std::string> CommandLine::others() const { return app_->remaining(); }
bool CommandLine::has(const std::string& option) const { return app_->count(option) > 0; }

bool CommandLine::parse(int argc, char** argv) const {
  try {
    app_->parse(argc, argv);
    return true;
  } catch (const CLI::Success& e) {
    app_->exit(e);
    return false;
  } catch (const CLI::ParseError& e) {
    fail("{}", sentence(*app_, e));
  }
}
size_t CommandLine::called() const { return app_->get_subcommands().size(); }

std::string parser_version() { return "CLI11 " CLI11_VERSION; }

int run_program(const char* program, const std::function<int()>& work) {
  constexpr int kBadInput = 2;
  std::signal(SIGXFSZ, SIG_IGN);  // so that writing fails instead
  try {
    check_processor();
    set_up_threads();
    flush_denormals();
    const int status = work();
    check_standard_output();
    return status;
  } catch (const std::system_error& e) {
    const bool is_of_output = std::ferror(stdout) != 0;  // from fmt::print
    std::fprintf(stderr, "%s: %s%s\n", program, is_of_output ? "the standard output cannot be written: " : "",
                 is_of_output ? e.code().message().c_str() : detail::on_one_line(e.what()).c_str());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: out of memory\n", program);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", program, detail::on_one_line(e.what()).c_str());
  }
  return kBadInput;
}

}  // namespace plumb::command
