#include "dispatch/tuning_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "dispatch/machine.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

struct Table {
  std::mutex mutex;
  std::map<std::string, TunedAlgorithms> known;  // on disk, by file name
  TunedAlgorithms in_use;                        // measured or adopted in this process
};
Table& table() {
  static Table* t = new Table;
  return *t;
}

// PLUMB_CACHE names the folder; "off" disables the files. A file's name contains what its results depend on.
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
  return folder / ("measured-" + device_signature(device) + ".txt");
}

// The first line of the file: whose results they are. It exposes a file that was copied from another machine.
std::string title_of(Device device) { return "plumbline measured on " + device_signature(device); }

// The beginning of a line of any file, safe to print.
std::string printable(std::string line) {
  line.resize(std::min<size_t>(line.size(), 80));
  for (char& c : line) c = c >= ' ' && c <= '~' ? c : '?';
  return line;
}

// Names of a user's networks and kinds may have any characters; a line has only printable ones of ASCII.
std::string escaped(const std::string& text) {
  std::string line;
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '\\') {
      line += c;
      continue;
    }
    char code[5];
    std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    line += code;
  }
  return line;
}
std::string unescaped(const std::string& line) {
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    const std::string code = line.substr(i, 4);
    const bool is_code = code.size() == 4 && code.starts_with("\\x") &&
                         std::isxdigit(static_cast<unsigned char>(code[2])) &&
                         std::isxdigit(static_cast<unsigned char>(code[3]));
    text += is_code ? static_cast<char>(std::stoi(code.substr(2), nullptr, 16)) : line[i];
    if (is_code) i += 3;
  }
  return text;
}

TunedAlgorithms read_choices(const fs::path& file, Device device) {
  constexpr const char* kWayOut = "delete the file to measure anew, or set PLUMB_CACHE=off";
  TunedAlgorithms choices;
  std::error_code ignored;
  const fs::file_status status = fs::status(file, ignored);
  if (!fs::exists(status)) return choices;
  constexpr uintmax_t kMostBytes = uintmax_t{1} << 28;
  PLUMB_CHECK(fs::is_regular_file(status) && fs::file_size(file, ignored) <= kMostBytes,
              "{} is no file of what was measured; {}", file.string(), kWayOut);
  std::ifstream in(file);
  PLUMB_CHECK(in, "{} cannot be read; {}", file.string(), kWayOut);
  std::string line;
  std::getline(in, line);
  PLUMB_CHECK(!in.eof() || line.empty(), "{} is damaged in line 1; {}", file.string(), kWayOut);
  PLUMB_CHECK(line == title_of(device), "{} does not hold what was measured on this machine: it begins with {}; {}",
              file.string(), detail::in_quotes(printable(line)), kWayOut);
  for (int64_t number = 2; std::getline(in, line); ++number) {
    if (in.eof()) break;  // a line without a line break: another process is writing it
    const size_t tab = line.find('\t');
    PLUMB_CHECK(tab != std::string::npos && tab > 0 && tab + 1 < line.size() && line.find('\t', tab + 1) == line.npos,
                "{} is damaged in line {}; {}", file.string(), number, kWayOut);
    choices[unescaped(line.substr(0, tab))] = unescaped(line.substr(tab + 1));
  }
  return choices;
}

const TunedAlgorithms& known_of(Table& t, Device device) {
  const fs::path file = file_of_results(device);
  const auto known = t.known.find(file.string());
  if (known != t.known.end()) return known->second;
  return t.known[file.string()] = read_choices(file, device);
}

bool write_all(const fs::path& file, int flags, const std::string& text) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | flags, 0644);
  if (fd < 0) return false;
  const bool is_whole = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  return is_whole;
}

// Removes an incomplete last line, left by a process that was killed while it wrote.
void mend_end(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return;
  off_t end = status.st_size;
  for (char c = 0; end > 0; --end) {
    if (::pread(fd, &c, 1, end - 1) != 1 || c == '\n') break;
  }
  if (end > 0 && end < status.st_size) std::ignore = ::ftruncate(fd, end);
}

// Appends one line with one write, and by one process at a time. A new file appears together with its title, unless
// another process was first. A cache that cannot be written is no error.
void append_to_file(Device device, const std::string& work, const std::string& algorithm) {
  const fs::path file = file_of_results(device);
  if (file.empty()) return;
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  if (!fs::exists(file, ignored)) {
    const fs::path titled = file.string() + message(".{}", ::getpid());
    const bool is_titled = write_all(titled, O_CREAT | O_EXCL, title_of(device) + "\n");
    // Some file systems have no links: there, of two that are first the second one's file stays.
    if (is_titled && ::link(titled.c_str(), file.c_str()) != 0 && errno != EEXIST) fs::rename(titled, file, ignored);
    fs::remove(titled, ignored);
  }
  const int fd = ::open(file.c_str(), O_RDWR | O_APPEND | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return;
  bool is_alone = false;  // until it is closed; a process that has stopped while it was is not waited for
  for (int tries = 0; tries < 500; ++tries) {
    is_alone = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (is_alone || (errno != EWOULDBLOCK && errno != EINTR)) break;  // or its file system has no locks
    ::usleep(1000);
  }
  if (is_alone) mend_end(fd);
  const std::string line = escaped(work) + "\t" + escaped(algorithm) + "\n";
  std::ignore = ::write(fd, line.data(), line.size());
  ::close(fd);
}

}  // namespace

std::optional<std::string> detail::find_tuned(Device device, const std::string& work,
                                              const std::function<bool(const std::string&)>& is_valid) {
  std::vector<std::string> found;
  Table& t = table();
  {
    const std::lock_guard lock(t.mutex);
    const TunedAlgorithms& known = known_of(t, device);
    for (const TunedAlgorithms* choices : {&std::as_const(t.in_use), &known}) {
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

void detail::keep_tuned(Device device, const std::string& work, const std::string& algorithm) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  t.in_use[work] = algorithm;
  append_to_file(device, work, algorithm);
}

TunedAlgorithms tuning_in_use() {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  return t.in_use;
}

void adopt_tuning(const TunedAlgorithms& choices) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  for (const auto& [work, algorithm] : choices) t.in_use[work] = algorithm;
}

}  // namespace plumb
