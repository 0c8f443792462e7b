// What this machine can do at best, by measurement.
#pragma once

#include <string>
#include <vector>

#include "core/block.h"
#include "core/device.h"
#include "core/dtype.h"

namespace plumb::measure {

struct Roofs {
  double fma_gflops = 0;          ///< f32 multiply-adds from registers, all threads
  double matmul_gflops = 0;       ///< the best f32 matmul of oneDNN over a few sizes
  double fma_bf16_gflops = 0;     ///< the processor's own products of bf16, from registers or the nearest cache
  double matmul_bf16_gflops = 0;  ///< the best bf16 matmul of oneDNN
  double copy_gbytes = 0;         ///< a parallel copy of memory far larger than the caches, bytes read and written
  /// The compute roof in f32: the larger of the first two.
  double gflops() const { return fma_gflops > matmul_gflops ? fma_gflops : matmul_gflops; }
  /// The compute roof of a dtype: of bf16 the largest of all, of f64 half of that in f32.
  double gflops(DType t) const;
};

/// Measures the roofs with the calling thread's number of threads; takes a few seconds.
Roofs measure_roofs();
/// Measures the arithmetic roofs again and keeps the higher rates.
void raise_arithmetic(Roofs& roofs);

/// How many sets of buffers, of `bytes` bytes each, to use in turn so that each has left the caches when it is used
/// again. 1 if a single set is larger than the caches, or if their size is not known. At most 64, so very small sets
/// stay in the caches.
int sets_beyond_caches(size_t bytes, Device device = {});

/// The time that any work with so many bytes of input and output takes at least: it reads the input and writes the
/// output once, in the fastest of several plain ways, beyond the caches (sets_beyond_caches).
class CopyFloor {
 public:
  /// `in_place`: the written bytes are the first of the bytes that are read.
  CopyFloor(size_t read_bytes, size_t written_bytes, bool in_place = false);

  void run() { run(way_); }
  /// The seconds of the fastest run, of `rounds` runs and of all runs timed before.
  double least_seconds(int rounds = 10);
  /// How it moves the bytes: "past the caches" or "through the caches", with "on one thread" if that is faster.
  std::string way() const;
  /// Sets of buffers, which take turns.
  int sets() const { return static_cast<int>(from_.size()); }

 private:
  struct Way {
    bool streams, one_thread;
  };
  void run(Way way);
  void move(Way way, int set) const;
  void move_piece(Way way, int set, size_t piece, size_t pieces) const;
  size_t read_, written_;
  bool in_place_;
  std::vector<detail::Block> from_, to_;
  size_t next_ = 0;
  Way way_{};
  double least_ = 0;
};

}  // namespace plumb::measure
