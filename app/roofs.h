// What this machine can do at best, measured.
#pragma once

#include <string>

namespace plumb::app {

struct Roofs {
  double fma_gflops = 0;     ///< f32 multiply-adds from registers, all threads
  double matmul_gflops = 0;  ///< the best f32 matmul of oneDNN over a few sizes
  double copy_gbytes = 0;    ///< a parallel copy of memory far larger than the caches, bytes read and written
  /// The compute roof: the larger of the first two.
  double gflops() const { return fma_gflops > matmul_gflops ? fma_gflops : matmul_gflops; }
};

/// Measures them with the calling thread's number of threads; takes about a second.
Roofs measure_roofs();

}  // namespace plumb::app
