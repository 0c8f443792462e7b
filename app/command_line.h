// What the programs do around their work: the command line is parsed, and every error is one sentence and status 2.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace plumb::app {

/// Parses a command line, which runs the callbacks of its subcommands. Throws one sentence for whatever is wrong with
/// it: an option that is unknown, is given twice, or has an empty value. Returns false when it asked for help or for
/// the version, which is printed then.
bool parse(CLI::App& app, int argc, char** argv);

/// What main() returns: the status of `work`, or 2 and one sentence behind the program's name for an error. Nothing is
/// lost in silence: a standard output that cannot be written is an error, and so is a file that grows too large.
int run_program(const char* program, const std::function<int()>& work);

}  // namespace plumb::app
