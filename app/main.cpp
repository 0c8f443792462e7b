#include <cstdio>
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

int run(int argc, char** argv) {
  CLI::App app("plumb: a neutral baseline for deep-learning frameworks", "plumb");
  app.set_version_flag("--version", versions());
  app.require_subcommand(1);
  plumb::app::add_train(app);
  plumb::app::add_eval(app);
  plumb::app::add_info(app);
  plumb::app::add_layout(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kBadInput;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    plumb::check_processor();
    plumb::flush_denormals();
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "plumb: %s\n", e.what());
    return kBadInput;
  }
}
