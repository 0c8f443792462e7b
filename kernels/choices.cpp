#include "kernels/choices.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <utility>

#include "kernels/machine.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

struct Table {
  std::mutex mutex;
  Choices known;   // on disk, for this machine and these libraries
  Choices in_use;  // decided or adopted in this process
  bool loaded = false;
};
Table& table() {
  static Table* t = new Table;
  return *t;
}

// PLUMB_CACHE names the folder; "off" keeps nothing. The file is named by what the results depend on.
fs::path file_of_results() {
  const char* set = std::getenv("PLUMB_CACHE");
  if (set && std::string_view(set) == "off") return {};
  fs::path folder;
  if (set && *set) {
    folder = set;
  } else if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) {
    folder = fs::path(xdg) / "plumbline";
  } else if (const char* home = std::getenv("HOME"); home && *home) {
    folder = fs::path(home) / ".cache" / "plumbline";
  } else {
    return {};
  }
  return folder / ("choices-" + machine_signature() + ".txt");
}

void load(Table& t) {
  if (std::exchange(t.loaded, true)) return;
  const fs::path file = file_of_results();
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return;  // nothing yet, or what reading might wait for
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (const size_t tab = line.find('\t'); tab != std::string::npos)
      t.known[line.substr(0, tab)] = line.substr(tab + 1);
  }
}

// One line, one write: several processes may append to the same file. A cache that cannot be written is no error.
void append_to_file(const std::string& work, const std::string& algorithm) {
  const fs::path file = file_of_results();
  if (file.empty()) return;
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
  if (fd < 0) return;
  const std::string line = work + "\t" + algorithm + "\n";
  [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
  ::close(fd);
}

}  // namespace

std::optional<std::string> detail::remembered_choice(const std::string& work,
                                                     const std::function<bool(const std::string&)>& is_valid) {
  std::vector<std::string> found;
  Table& t = table();
  {
    const std::lock_guard lock(t.mutex);
    load(t);
    for (const Choices* choices : {&t.in_use, &t.known}) {
      if (const auto it = choices->find(work); it != choices->end()) found.push_back(it->second);
    }
  }
  for (const std::string& algorithm : found) {
    if (!is_valid(algorithm)) continue;
    const std::lock_guard lock(t.mutex);
    return t.in_use[work] = algorithm;
  }
  return std::nullopt;
}

void detail::remember_choice(const std::string& work, const std::string& algorithm) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  t.in_use[work] = algorithm;
  append_to_file(work, algorithm);
}

Choices choices_in_use() {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  return t.in_use;
}

void adopt_choices(const Choices& choices) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  for (const auto& [work, algorithm] : choices) t.in_use[work] = algorithm;
}

}  // namespace plumb
