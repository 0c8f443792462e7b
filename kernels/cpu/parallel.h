// The only place where loops are spread over threads.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/range.h"

namespace plumb::cpu {

// ThreadSanitizer cannot see the synchronisation inside libgomp; there, loops run on the calling thread.
#ifdef PLUMB_SANITIZED_THREADS
inline constexpr bool kParallel = false;
#else
inline constexpr bool kParallel = true;
#endif

/// Work on fewer bytes than this costs less than waking the other threads.
inline constexpr int64_t kGrainBytes = 64 << 10;

/// Calls body(begin, end) over [0, n) in contiguous pieces, one per thread; pieces start at multiples of `multiple`.
/// Runs on the calling thread alone if n <= grain; the branch is here since `omp parallel if(false)` costs more than
/// many ops.
template <class Body>
void parallel_for(int64_t n, int64_t grain, int64_t multiple, const Body& body) {
  grain = std::max<int64_t>(grain, 1);          // a unit may be larger than the grain
  const bool alone = !kParallel || n <= grain;  // for few elements, asking OpenMP takes longer than the work
  const int wanted = alone || omp_in_parallel() ? 1 : omp_get_max_threads();
  if (wanted == 1) {
    if (n > 0) body(int64_t{0}, n);
    return;
  }
  const int64_t units = ceil_div(n, multiple);
  const int team = static_cast<int>(std::min<int64_t>({wanted, units, ceil_div(n, grain)}));
#pragma omp parallel num_threads(team)
  {
    const int64_t t = omp_get_thread_num(), count = omp_get_num_threads();
    const int64_t begin = std::min(n, units * t / count * multiple),
                  end = std::min(n, units * (t + 1) / count * multiple);
    if (begin < end) body(begin, end);
  }
}
template <class Body>
void parallel_for(int64_t n, int64_t grain, const Body& body) {
  parallel_for(n, grain, 1, body);
}

/// Calls body(thread, threads) once on each of `team` threads; the body divides the work itself.
template <class Body>
void parallel_team(int team, const Body& body) {
  if (!kParallel || team <= 1 || omp_in_parallel()) {
    for (int t = 0; t < team; ++t) body(t, team);
    return;
  }
#pragma omp parallel num_threads(team)
  {
    // OpenMP may give fewer threads than asked for; every piece is still done.
    for (int t = omp_get_thread_num(); t < team; t += omp_get_num_threads()) body(t, team);
  }
}

}  // namespace plumb::cpu
