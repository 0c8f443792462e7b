// How many threads the host's kernels use, and how these are set up.
#pragma once

namespace plumb {

/// How many threads the kernels of the calling thread use.
int threads();
/// Sets it for the calling thread, from 1 to most_threads(). Throws also when the system cannot run so many.
void set_threads(int n);
inline constexpr int kMostThreads = 4096;
/// kMostThreads, or less where OMP_THREAD_LIMIT says so.
int most_threads();
/// Makes denormal results zero on the calling thread and on its pool of worker threads. Programs do this once at the
/// start.
void flush_denormals();
/// For programs, before any kernel runs: teams of OpenMP get the threads that they ask for (oneDNN's kernels wait for
/// them), OMP_DYNAMIC or not, and OMP_THREAD_LIMIT holds. Throws a sentence when OMP_NUM_THREADS is out of reach.
void set_up_threads();

}  // namespace plumb
