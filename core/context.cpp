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
#include "core/runtime.h"

namespace plumb {
namespace {

// What the library's own candidates are called; a test holds this against the candidates of every op.
constexpr std::string_view kOwnAlgorithms[] = {"direct",
                                               "direct_chwn",
                                               "winograd_f2x2",
                                               "winograd_f4x4",
                                               "gemm",
                                               "gemm_columns",
                                               "inner_product",
                                               "matmul",
                                               "thin",
                                               "skinny_gemm_apart",
                                               "loop",
                                               "rows",
                                               "blocked",
                                               "transpose",
                                               "fused",
                                               "philox",
                                               "repack",
                                               "reference",
                                               "as_f32_direct",
                                               "as_f32_direct_chwn",
                                               "as_f32_blocked",
                                               "as_f32_winograd_f2x2",
                                               "as_f32_winograd_f4x4",
                                               "as_f32_thin"};

struct Names {
  std::mutex mutex;
  std::vector<const std::string*> all{new std::string};  // never freed: views of them are handed out
  Names() {
    for (const std::string_view own : kOwnAlgorithms) number_of(own);
  }
  uint16_t number_of(std::string_view name) {
    for (size_t i = 1; i < all.size(); ++i) {
      if (*all[i] == name) return static_cast<uint16_t>(i);
    }
    PLUMB_CHECK(all.size() < 65536, "too many names of algorithms");
    all.push_back(new std::string(name));
    return static_cast<uint16_t>(all.size() - 1);
  }
};
Names& names() {
  static Names* n = new Names;
  return *n;
}

constinit std::atomic<void (*)(void*)> front_deleter{nullptr};  // every thread that has a table sets the same

void release_workspace() {
  if (detail::ctx.workspace)
    cpu_memory().put(std::exchange(detail::ctx.workspace, nullptr), detail::ctx.workspace_bytes,
                     MemoryClass::kWorkspace);
  detail::ctx.workspace_bytes = 0;
}

struct ThreadEnd {
  bool watched = false;
  ~ThreadEnd() {
    if (detail::ctx.front) front_deleter.load(std::memory_order_relaxed)(std::exchange(detail::ctx.front, nullptr));
    release_workspace();
    detail::ctx.pool.drain();
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

uint16_t register_algorithm(std::string_view name) {
  if (name.empty()) return 0;
  Names& n = names();
  const std::lock_guard lock(n.mutex);
  return n.number_of(name);
}

uint16_t algorithm_id(std::string_view name) {
  if (name.empty()) return 0;
  Names& n = names();
  const std::lock_guard lock(n.mutex);
  std::string known;
  for (size_t i = 1; i < n.all.size(); ++i) {
    if (n.all[i]->starts_with(name)) return n.number_of(name);
    known += (i == 1 ? "" : ", ") + *n.all[i];
  }
  fail("algorithm \"{}\" is unknown; use one of {}, or the beginning of one, or name your own by register_algorithm",
       name, known);
}

std::string_view algorithm_name(uint16_t id) {
  Names& n = names();
  const std::lock_guard lock(n.mutex);
  PLUMB_CHECK(id < n.all.size(), "algorithm number {} is unknown; take one from algorithm_id", static_cast<int>(id));
  return *n.all[id];
}

PolicyScope::PolicyScope(Policy c) : old_(detail::ctx.policy) {
  PLUMB_CHECK(c.search <= Search::kDeterministic && c.math <= MathMode::kBf16,
              "policy: search {} or math mode {} is unknown; use one of the enumerators", static_cast<int>(c.search),
              static_cast<int>(c.math));
  if (c.algorithm) algorithm_name(c.algorithm);
  set(c);
}

int detail::threads_of(const Policy& c) { return c.threads ? c.threads : omp_get_max_threads(); }
int threads() { return detail::threads_of(detail::ctx.policy); }

int most_threads() { return std::min(omp_get_thread_limit(), kMostThreads); }

void set_threads(int n) {
  PLUMB_CHECK(n >= 1 && n <= most_threads(), "set_threads: {} threads were asked for; use 1 to {}", n, most_threads());
  check_team(n);
  omp_set_num_threads(n);
  detail::ctx.policy.threads = static_cast<uint16_t>(n);
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

void release_idle_memory(Device d) {
  if (!d.is_cpu()) return runtime_of(d).release_idle_memory();
  release_workspace();
  cpu_memory().trim();
}

}  // namespace detail
}  // namespace plumb
