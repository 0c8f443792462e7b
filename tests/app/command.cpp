#include "tests/app/command.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

#include "core/error.h"

namespace plumb::test {
namespace {

namespace fs = std::filesystem;

struct Close {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, Close>;

std::string contents(std::FILE* f) {
  std::string text;
  std::rewind(f);
  for (int c = std::fgetc(f); c != EOF; c = std::fgetc(f)) text += static_cast<char>(c);
  return text;
}

// In the child, where only calls are allowed that are safe after a fork.
[[noreturn]] void become(const fs::path& folder, int out, int err, uint64_t largest_file, char** arguments,
                         char** environment) {
  bool ready = ::chdir(folder.c_str()) == 0;
  ready = ready && ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO) >= 0;
  ready = ready && ::dup2(out, STDOUT_FILENO) >= 0 && ::dup2(err, STDERR_FILENO) >= 0;
  if (largest_file) {
    const rlimit limit{largest_file, largest_file};
    ready = ready && ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
  }
  if (ready) ::execve(PLUMB_COMMAND, arguments, environment);
  ::_exit(127);
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Outcome& o) {
  return out << "status " << o.status << "\n--- standard output\n" << o.out << "--- standard error\n" << o.err;
}

testing::AssertionResult is_refusal(const Outcome& o, const std::string& part) {
  const bool one_line = std::ranges::count(o.err, '\n') == 1 && o.err.ends_with('\n');
  if (o.status == 2 && one_line && o.err.starts_with("plumb: ") && o.err.find(part) != o.err.npos) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "expected status 2 and one sentence with \"" << part << "\"\n" << o;
}

Outcome CommandTest::run(const std::string& line, const Surroundings& s) const {
  std::vector<std::string> words{"plumb"};
  std::istringstream rest(line);
  for (std::string word; rest >> word;) words.push_back(word == "''" ? "" : word);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::string variable = s.variable;
  const std::string name = variable.substr(0, variable.find('=') + 1);
  std::vector<char*> environment;
  for (char** v = environ; *v; ++v) {
    if (name.empty() || !std::string_view(*v).starts_with(name)) environment.push_back(*v);
  }
  if (!variable.empty()) environment.push_back(variable.data());
  environment.push_back(nullptr);
  const File out(s.output.empty() ? std::tmpfile() : std::fopen(s.output.c_str(), "wb")), err(std::tmpfile());
  PLUMB_CHECK(out && err, "no files for the output of {}", line);

  const pid_t child = ::fork();
  PLUMB_CHECK(child >= 0, "no process for {}", line);
  if (child == 0) {
    become(folder_, ::fileno(out.get()), ::fileno(err.get()), s.largest_file, arguments.data(), environment.data());
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;

  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), s.output.empty() ? contents(out.get()) : "",
          contents(err.get())};
}

testing::AssertionResult CommandTest::works(const std::string& line, const Surroundings& s) const {
  const Outcome o = run(line, s);
  if (o.status == 0 && o.err.empty()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "plumb " << line << "\n" << o;
}

testing::AssertionResult CommandTest::refuses(const std::string& line, const std::string& part,
                                              const Surroundings& s) const {
  const auto before = files();
  const Outcome o = run(line, s);
  const auto refusal = is_refusal(o, part);
  if (!refusal) return testing::AssertionFailure() << "plumb " << line << "\n" << refusal.message();
  if (!o.out.empty()) return testing::AssertionFailure() << "plumb " << line << "\nprinted before it refused\n" << o;
  if (files() == before) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "plumb " << line << "\nchanged the folder\n" << o;
}

Json CommandTest::report_of(const std::string& line) const {
  EXPECT_TRUE(works(line + " --json report.json"));
  return read_json("report.json");
}

void CommandTest::write(const std::string& name, const Bytes& bytes) const {
  fs::create_directories((folder_ / name).parent_path());
  std::ofstream(folder_ / name, std::ios::binary) << bytes;
}

std::map<std::string, std::pair<fs::file_time_type, uintmax_t>> CommandTest::files() const {
  std::map<std::string, std::pair<fs::file_time_type, uintmax_t>> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    auto& state = all[entry.path().lexically_relative(folder_).string()];
    if (entry.is_regular_file()) state = {entry.last_write_time(), entry.file_size()};
  }
  return all;
}

}  // namespace plumb::test
