#include "kernels/choose.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "core/memory.h"
#include "kernels/machine.h"
#include "kernels/trial.h"

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
  if (file.empty()) return;
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
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return;
  const std::string line = work + "\t" + algorithm + "\n";
  [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
  ::close(fd);
}

std::string describe(const Prepared& p) {
  std::string text = p.kind->name;
  constexpr char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < p.kind->param_words; ++i) {
    text += i ? '.' : ' ';
    for (int shift = 60; shift >= 0; shift -= 4) text += digits[(p.params[i] >> shift) & 15];
  }
  for (const TensorSpec& s : p.in()) text += " " + to_string(s);
  text += " ->";
  for (const TensorSpec& s : p.out()) text += " " + to_string(s);
  text += message(" threads {} math {}", threads_of(p.choice), static_cast<int>(p.choice.math));
  if (p.choice.algorithm) text += message(" among {}", algorithm_name(p.choice.algorithm));
  return text;
}

struct Made {
  std::string algorithm;
  std::unique_ptr<Kernel> kernel;
};

// The fastest of several, each by its best time; a candidate that is far behind after its first run is not run again.
size_t fastest(const Prepared& p, const std::vector<Made>& made) {
  Scratch scratch(p.in(), p.out());
  std::vector<const Kernel*> kernels;
  for (const Made& m : made) kernels.push_back(m.kernel.get());
  const std::vector<Trial> trials = Trial::in_turn(scratch, p.in(), kernels);
  std::vector<double> best;
  for (const Trial& t : trials) {  // the first run prepares and warms up; one slow moment is no reason to drop a kernel
    double spent = t();
    best.push_back(spent);
    for (int i = 0; i < 4 && spent < 0.02; ++i) {
      const double seconds = t();
      spent += seconds;
      best.back() = std::min(best.back(), seconds);
    }
  }
  constexpr double kEnough = 0.02, kBudget = 0.2;  // seconds of timing for one piece of work
  double spent = 0;
  for (int round = 0; spent < kEnough ? round < 200 : round < 20 && (round < 3 || spent < kBudget); ++round) {
    for (size_t i = 0; i < made.size(); ++i) {  // in turn, so that a slow moment hits all alike
      if (best[i] > 1.5 * *std::min_element(best.begin(), best.end())) continue;
      const double seconds = trials[i]();
      spent += seconds;
      best[i] = std::min(best[i], seconds);
    }
  }
  return static_cast<size_t>(std::min_element(best.begin(), best.end()) - best.begin());
}

std::vector<Candidates::Candidate> in_order(const Prepared& p, const Candidates& candidates) {
  std::vector<Candidates::Candidate> order = candidates.all();
  if (p.choice.search == Search::kDeterministic) {
    std::erase_if(order, [](const auto& c) { return !c.deterministic; });
  }
  if (p.choice.algorithm) {
    const std::string_view family = algorithm_name(p.choice.algorithm);
    std::stable_partition(order.begin(), order.end(), [&](const auto& c) { return c.algorithm.starts_with(family); });
  }
  return order;
}

Made first_of(const std::vector<Candidates::Candidate>& order) {
  for (const auto& c : order) {
    if (auto kernel = c.make()) return {c.algorithm, std::move(kernel)};
  }
  return {};
}

Made by_name(const std::vector<Candidates::Candidate>& order, const std::string& algorithm) {
  for (const auto& c : order) {
    if (c.algorithm != algorithm) continue;
    if (auto kernel = c.make()) return {algorithm, std::move(kernel)};
  }
  return {};
}

Made measured(const Prepared& p, const std::vector<Candidates::Candidate>& order) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  load(t);
  const std::string work = describe(p);
  for (const Choices* known : {&t.in_use, &t.known}) {
    const auto it = known->find(work);
    if (it == known->end()) continue;
    if (Made m = by_name(order, it->second); m.kernel) {
      t.in_use[work] = m.algorithm;
      return m;
    }
  }
  // The family that was asked for, if any of it applies; otherwise all. Plain loops only where there is nothing else.
  const std::string_view family = p.choice.algorithm ? algorithm_name(p.choice.algorithm) : std::string_view();
  std::vector<Made> made;
  for (const bool in_family : {true, false}) {
    for (const auto& c : order) {
      if (c.algorithm.starts_with(family) != in_family || (c.algorithm == "reference" && !made.empty())) continue;
      if (auto kernel = c.make()) made.push_back({c.algorithm, std::move(kernel)});
    }
    if (!made.empty()) break;
  }
  if (made.size() < 2) return made.empty() ? Made{} : std::move(made[0]);
  Made best = std::move(made[fastest(p, made)]);
  made.clear();
  cpu_memory().trim();  // what measuring took is of other sizes than what comes next: it would only stay
  t.in_use[work] = best.algorithm;
  append_to_file(work, best.algorithm);
  return best;
}

}  // namespace

std::unique_ptr<Kernel> choose_kernel(const Prepared& p) {
  Candidates candidates;
  p.kind->offer(p.params.data(), p.in(), p.out(), p.choice, threads_of(p.choice), candidates);
  const auto order = in_order(p, candidates);
  Made made = p.choice.search == Search::kMeasured ? measured(p, order) : first_of(order);
  if (!made.kernel) {
    std::string specs;
    for (const TensorSpec& s : p.in()) specs += (specs.empty() ? "" : ", ") + to_string(s);
    fail("{}: no kernel on {} takes {}", p.kind->name, p.choice.device, specs.empty() ? "this problem" : specs);
  }
  KernelInfo& info = made.kernel->info();
  info.algorithm = made.algorithm;
  info.flops = p.kind->flops(p.params.data(), p.in(), p.out());
  for (const TensorSpec& s : p.specs) info.bytes += static_cast<double>(s.bytes());
  return std::move(made.kernel);
}

std::string remembered_choice(const std::string& work, const std::function<std::string()>& measure) {
  Table& t = table();
  {
    const std::lock_guard lock(t.mutex);
    load(t);
    for (const Choices* known : {&t.in_use, &t.known}) {
      if (const auto it = known->find(work); it != known->end()) return t.in_use[work] = it->second;
    }
  }
  const std::string found = measure();  // may prepare kernels, which takes the lock
  const std::lock_guard lock(t.mutex);
  t.in_use[work] = found;
  append_to_file(work, found);
  return found;
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
