// The subcommands of plumb. Each adds itself to the command line and runs when it was named.
#pragma once

namespace CLI {
class App;
}

namespace plumb::app {

void add_train(CLI::App& app);
void add_eval(CLI::App& app);
void add_info(CLI::App& app);
void add_layout(CLI::App& app);

}  // namespace plumb::app
