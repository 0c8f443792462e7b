#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "app/command.h"
#include "core/error.h"
#include "dispatch/machine.h"
#include "measure/command/command_line.h"

namespace {

std::string versions() {
  std::string text = "plumb " + plumb::version();
  for (const std::string& v : plumb::library_versions()) text += "\n" + v;
  return text + fmt::format("\nfmt {}.{}.{}\n{}\nnlohmann-json {}.{}.{}\nOpenMP {}", FMT_VERSION / 10000,
                            FMT_VERSION / 100 % 100, FMT_VERSION % 100, plumb::app::parser_version(),
                            NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH,
                            _OPENMP);
}

int run(int argc, char** argv) {
  const plumb::app::CommandLine line("plumb: a neutral baseline for deep-learning frameworks", "plumb");
  line.version(versions());
  line.footer(
      "The fastest kernels are measured once and remembered in $PLUMB_CACHE [$XDG_CACHE_HOME/plumbline or\n"
      "~/.cache/plumbline]; \"off\" remembers nothing. Every subcommand has --help of its own.");
  plumb::app::add_train(line);
  plumb::app::add_eval(line);
  plumb::app::add_info(line);
  plumb::app::add_layout(line);
  plumb::app::add_plan(line);
  plumb::app::add_audit(line);
  if (line.parse(argc, argv))
    PLUMB_CHECK(line.called() == 1, "give a subcommand: train, eval, info, layout, plan or audit");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return plumb::app::run_program("plumb", [&] { return run(argc, argv); });
}
