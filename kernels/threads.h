// How many threads the host's kernels use, and how the threads are set up.
#pragma once

namespace plumb {

/// How many threads the kernels of the calling thread use.
int threads();
/// Sets this number for the calling thread, from 1 to most_threads(). Also throws if the system cannot run so many.
void set_threads(int n);
inline constexpr int kMostThreads = 4096;
/// kMostThreads, or OMP_THREAD_LIMIT if that is less.
int most_threads();
/// Makes denormal results zero on the calling thread and on its worker threads. The commands call it
/// once at their start; a program that never does keeps denormals, which take tens of times as long.
void flush_denormals();
/// Sets up OpenMP for the calling thread; call it before any kernel runs, as the commands do, where OMP_DYNAMIC may be
/// set. Its teams get all threads that they ask for, despite OMP_DYNAMIC (oneDNN's kernels wait for them), as after
/// set_threads; OMP_THREAD_LIMIT still holds. Throws if OMP_NUM_THREADS is too large.
void set_up_threads();

}  // namespace plumb
