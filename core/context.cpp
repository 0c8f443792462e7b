#include "core/context.h"

#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <latch>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"

namespace plumb {
namespace {

struct Names {
  std::mutex mutex;
  std::vector<const std::string*> all{new std::string};  // never freed: views of them are handed out
};
Names& names() {
  static Names* n = new Names;
  return *n;
}

constinit std::atomic<void (*)(void*)> front_deleter{nullptr};  // every thread that has a table sets the same

void release_workspace() {
  if (ctx.workspace)
    cpu_memory().put(std::exchange(ctx.workspace, nullptr), ctx.workspace_bytes, MemoryClass::kWorkspace);
  ctx.workspace_bytes = 0;
}

struct ThreadEnd {
  bool watched = false;
  ~ThreadEnd() {
    if (ctx.front) front_deleter.load(std::memory_order_relaxed)(std::exchange(ctx.front, nullptr));
    release_workspace();
    ctx.pool.drain();
  }
};
thread_local ThreadEnd thread_end;

// Throws if the system would not run so many threads at once; OpenMP would end the process.
void check_team(int n) {
  static std::atomic<int> known{1};
  if (n <= known.load(std::memory_order_relaxed)) return;
  std::latch go(1);
  std::vector<std::thread> team;
  bool started = true;
  try {
    team.reserve(static_cast<size_t>(n));
    while (team.size() + 1 < static_cast<size_t>(n)) team.emplace_back([&go] { go.wait(); });
  } catch (const std::exception&) {
    started = false;
  }
  go.count_down();
  for (std::thread& t : team) t.join();
  PLUMB_CHECK(started, "{} threads cannot be started on this system; use fewer", n);
  known.store(n, std::memory_order_relaxed);
}

}  // namespace

uint16_t algorithm_id(std::string_view name) {
  if (name.empty()) return 0;
  Names& n = names();
  const std::lock_guard lock(n.mutex);
  for (size_t i = 1; i < n.all.size(); ++i) {
    if (*n.all[i] == name) return static_cast<uint16_t>(i);
  }
  PLUMB_CHECK(n.all.size() < 65536, "too many names of algorithms");
  n.all.push_back(new std::string(name));
  return static_cast<uint16_t>(n.all.size() - 1);
}

std::string_view algorithm_name(uint16_t id) {
  Names& n = names();
  const std::lock_guard lock(n.mutex);
  PLUMB_CHECK(id < n.all.size(), "algorithm number {} is unknown", static_cast<int>(id));
  return *n.all[id];
}

int threads_of(const Choice& c) { return c.threads ? c.threads : omp_get_max_threads(); }
int threads() { return threads_of(ctx.choice); }

int most_threads() { return std::min(omp_get_thread_limit(), kMostThreads); }

void set_threads(int n) {
  PLUMB_CHECK(n >= 1 && n <= most_threads(), "set_threads: {} threads were asked for; use 1 to {}", n, most_threads());
  check_team(n);
  omp_set_num_threads(n);
  ctx.choice.threads = static_cast<uint16_t>(n);
}

void set_up_threads() {
  omp_set_dynamic(0);
  const int asked = omp_get_max_threads();
  PLUMB_CHECK(asked <= kMostThreads, "OMP_NUM_THREADS asks for {} threads; use at most {}", asked, kMostThreads);
  const int n = std::min(asked, most_threads());
  check_team(n);
  omp_set_num_threads(n);
}

void flush_denormals() {
#pragma omp parallel num_threads(threads())
  _mm_setcsr(_mm_getcsr() | 0x8040u);  // flush to zero, denormals are zero
}

namespace detail {

void watch_thread_end(void (*release_front)(void*)) {
  if (release_front) front_deleter.store(release_front, std::memory_order_relaxed);
  thread_end.watched = true;
}

void grow_workspace(size_t bytes) {
  watch_thread_end();
  release_workspace();
  ctx.workspace = cpu_memory().get(bytes, MemoryClass::kWorkspace);
  ctx.workspace_bytes = bytes;
}

void release_idle_memory() {
  release_workspace();
  cpu_memory().trim();
}

}  // namespace detail
}  // namespace plumb
