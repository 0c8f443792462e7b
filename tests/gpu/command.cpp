// The harness around the command that lies beside this program: both may have been built elsewhere.
#include <filesystem>
#include <string>

namespace {
const std::string command_beside =
    (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "plumb").string();  // before there are children
}  // namespace
#define PLUMB_COMMAND command_beside.c_str()
#include "tests/app/command.cpp"
