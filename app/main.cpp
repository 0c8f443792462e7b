#include "app/command.h"
#include "app/command_line.h"
#include "core/error.h"
#include "kernels/machine.h"

namespace {

std::string versions() {
  std::string text = "plumb " PLUMB_VERSION_STRING;
  for (const std::string& v : plumb::library_versions()) text += "\n" + v;
  return text;
}

int run(int argc, char** argv) {
  CLI::App app("plumb: a neutral baseline for deep-learning frameworks", "plumb");
  app.set_version_flag("--version", versions());
  app.require_subcommand(0, 1);  // so that a wrong one is named by the parser
  plumb::app::add_train(app);
  plumb::app::add_eval(app);
  plumb::app::add_info(app);
  plumb::app::add_layout(app);
  if (plumb::app::parse(app, argc, argv)) {
    PLUMB_CHECK(app.get_subcommands().size() == 1, "give a subcommand: train, eval, info or layout");
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return plumb::app::run_program("plumb", [&] { return run(argc, argv); });
}
