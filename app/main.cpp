#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>

#include "app/command.h"
#include "core/context.h"
#include "core/error.h"
#include "kernels/machine.h"

namespace {

constexpr int kBadInput = 2;

std::string versions() {
  std::string text = "plumb " PLUMB_VERSION_STRING;
  for (const std::string& v : plumb::library_versions()) text += "\n" + v;
  return text;
}

// One sentence that begins like those of every other error.
std::string failure(const CLI::App*, const CLI::Error& e) {
  std::string what = e.what();
  std::replace(what.begin(), what.end(), '\n', ' ');
  return "plumb: " + what + "; --help lists what there is\n";
}

int run(int argc, char** argv) {
  CLI::App app("plumb: a neutral baseline for deep-learning frameworks", "plumb");
  app.set_version_flag("--version", versions());
  app.require_subcommand(0, 1);  // so that a wrong one is named by the parser
  app.failure_message(failure);
  plumb::app::add_train(app);
  plumb::app::add_eval(app);
  plumb::app::add_info(app);
  plumb::app::add_layout(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kBadInput;
  }
  PLUMB_CHECK(app.get_subcommands().size() == 1, "give a subcommand: train, eval, info or layout");
  PLUMB_CHECK(std::fflush(stdout) == 0 && !std::ferror(stdout), "the standard output cannot be written: {}",
              std::strerror(errno));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    plumb::check_processor();
    plumb::flush_denormals();
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "plumb: out of memory; a smaller --batch or --limit takes less\n");
    return kBadInput;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "plumb: %s\n", e.what());
    return kBadInput;
  }
}
