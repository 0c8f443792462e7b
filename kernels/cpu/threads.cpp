#include "kernels/threads.h"

#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <latch>
#include <thread>
#include <vector>

#include "core/error.h"
#include "dispatch/machine.h"

namespace plumb {
namespace {

// Throws if the system cannot run so many threads at once; without this check, OpenMP would end the process.
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

int detail::threads_of(const Policy& c) {
  return c.threads ? c.threads : std::min(omp_get_max_threads(), kMostThreads);
}
void detail::refuse_in_region(const char* what, int threads) {
  if (!omp_in_parallel()) [[likely]]
    return;
  const int most = std::max(threads, omp_get_max_threads());
  PLUMB_CHECK(most == 1,
              "{}: inside a parallel region of OpenMP no kernel can start its {} threads; call set_threads(1) there "
              "first, or start threads in another way",
              what, most);
}
int threads() { return detail::threads_of(detail::ctx.policy); }

int most_threads() { return std::min(omp_get_thread_limit(), kMostThreads); }

void set_threads(int n) {
  PLUMB_CHECK(n >= 1 && n <= most_threads(), "set_threads: {} threads were asked for; use 1 to {}", n, most_threads());
  check_team(n);
  omp_set_dynamic(0);
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

}  // namespace plumb
