// The subcommands of plumb. Each adds itself to the command line and runs when it was named.
#pragma once

#include "measure/command/command_line.h"

namespace plumb::app {

using namespace command;

void add_train(const CommandLine& plumb);
void add_eval(const CommandLine& plumb);
void add_info(const CommandLine& plumb);
void add_layout(const CommandLine& plumb);
void add_plan(const CommandLine& plumb);
void add_audit(const CommandLine& plumb);

}  // namespace plumb::app
