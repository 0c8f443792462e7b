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
  std::map<std::string, Choices> known;  // on disk, by the name of the file
  Choices in_use;                        // decided or adopted in this process
};
Table& table() {
  static Table* t = new Table;
  return *t;
}

// PLUMB_CACHE names the folder; "off" keeps nothing. The file is named by what the results depend on.
fs::path file_of_results(Device device) {
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
  return folder / ("choices-" + device_signature(device) + ".txt");
}

const Choices& known_of(Table& t, Device device) {
  const fs::path file = file_of_results(device);
  const auto [known, is_new] = t.known.try_emplace(file.string());
  std::error_code ignored;
  if (!is_new || !fs::is_regular_file(file, ignored))
    return known->second;  // nothing yet, or what reading might wait for
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (const size_t tab = line.find('\t'); tab != std::string::npos)
      known->second[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return known->second;
}

// One line, one write: several processes may append to the same file. A cache that cannot be written is no error.
void append_to_file(Device device, const std::string& work, const std::string& algorithm) {
  const fs::path file = file_of_results(device);
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

std::optional<std::string> detail::remembered_choice(Device device, const std::string& work,
                                                     const std::function<bool(const std::string&)>& is_valid) {
  std::vector<std::string> found;
  Table& t = table();
  {
    const std::lock_guard lock(t.mutex);
    const Choices& known = known_of(t, device);
    for (const Choices* choices : {&std::as_const(t.in_use), &known}) {
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

void detail::remember_choice(Device device, const std::string& work, const std::string& algorithm) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  t.in_use[work] = algorithm;
  append_to_file(device, work, algorithm);
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
