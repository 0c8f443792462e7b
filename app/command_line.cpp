#include "app/command_line.h"

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
#include "kernels/machine.h"

namespace plumb::app {
namespace {

std::vector<CLI::Option*> all_options(CLI::App& app) {
  std::vector<CLI::Option*> all = app.get_options();
  for (CLI::App* subcommand : app.get_subcommands({})) {
    const auto more = all_options(*subcommand);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::string refuse_empty(const std::string& value) {
  return value.empty() ? "its value is empty; give one, or leave it out" : "";
}

std::string sentence(CLI::App& app, const CLI::ParseError& e) {
  for (const CLI::Option* o : all_options(app)) {
    if (o->get_positional() || o->get_items_expected_max() != 1) continue;
    if (o->count() > 1) return o->get_name() + " was given " + (o->count() == 2 ? "twice" : "several times");
  }
  std::string what = e.what();
  std::replace(what.begin(), what.end(), '\n', ' ');
  if (dynamic_cast<const CLI::ValidationError*>(&e)) return what;
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&e)) return what.substr(0, what.find(':')) + " needs a value";
  return what + "; --help lists what there is";
}

void check_standard_output() {
  std::cout.flush();
  PLUMB_CHECK(std::fflush(stdout) == 0 && !std::ferror(stdout), "the standard output cannot be written: {}",
              std::strerror(errno));
}

}  // namespace

bool parse(CLI::App& app, int argc, char** argv) {
  for (CLI::Option* o : all_options(app)) {
    if (o->get_expected_min() > 0) o->check(CLI::Validator(refuse_empty, ""));
  }
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::Success& e) {
    app.exit(e);
    return false;
  } catch (const CLI::ParseError& e) {
    fail("{}", sentence(app, e));
  }
}

int run_program(const char* program, const std::function<int()>& work) {
  constexpr int kBadInput = 2;
  std::signal(SIGXFSZ, SIG_IGN);  // writing fails instead
  try {
    check_processor();
    set_up_threads();
    flush_denormals();
    const int status = work();
    check_standard_output();
    return status;
  } catch (const std::system_error& e) {  // fmt::print's; files of ours have errors of their own
    std::fprintf(stderr, "%s: the standard output cannot be written: %s\n", program, e.code().message().c_str());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: out of memory\n", program);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", program, detail::on_one_line(e.what()).c_str());
  }
  return kBadInput;
}

}  // namespace plumb::app
