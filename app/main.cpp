#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/command_line.h"
#include "core/error.h"
#include "kernels/machine.h"

namespace {

std::string versions() {
  std::string text = "plumb " + plumb::version();
  for (const std::string& v : plumb::library_versions()) text += "\n" + v;
  return text + fmt::format("\nfmt {}.{}.{}\nCLI11 {}\nnlohmann-json {}.{}.{}\nOpenMP {}", FMT_VERSION / 10000,
                            FMT_VERSION / 100 % 100, FMT_VERSION % 100, CLI11_VERSION, NLOHMANN_JSON_VERSION_MAJOR,
                            NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH, _OPENMP);
}

int run(int argc, char** argv) {
  CLI::App app("plumb: a neutral baseline for deep-learning frameworks", "plumb");
  app.set_version_flag("--version", versions());
  app.footer(
      "The fastest kernels are measured once and remembered in $PLUMB_CACHE [~/.cache/plumbline]; \"off\" remembers\n"
      "nothing. Every subcommand has --help of its own.");
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
