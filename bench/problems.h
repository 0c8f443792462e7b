// The shapes that are benchmarked, read from the problem lines of benchdnn and DeepBench.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/conv2d.h"
#include "kernels/pool2d.h"

namespace plumb::bench {

struct ConvProblem {
  std::string name;
  Shape x, w, y;
  Conv2dParams params;
};
struct LinearProblem {
  std::string name;
  int64_t n, in, out;
};
struct MatmulProblem {
  std::string name;
  Shape a, b;  ///< as they stand in memory
  bool transpose_a = false, transpose_b = false;
};
struct PoolProblem {
  std::string name;
  Shape x, y;
  Pool2dParams params;
};
/// Something that elementwise ops, reductions and conversions work on.
struct TensorProblem {
  std::string name;
  Shape shape;
};

struct Problems {
  std::vector<ConvProblem> conv2d;
  std::vector<LinearProblem> linear;
  std::vector<MatmulProblem> matmul;
  std::vector<PoolProblem> pool2d;
  std::vector<TensorProblem> tensor;

  size_t size() const;  ///< of all kinds
  /// Appends the problems of a text, one a line; `source` names the text in messages. `batch` replaces the first extent
  /// of every problem of benchdnn's but matrix products, unless it is 0. What a line is follows from what it says:
  ///   g1mb250ic64ih32oc64oh30kh3ph0n"name"   benchdnn: convolution (kh and oc), pooling (kh), inner product (oc)
  ///                                          or a tensor (neither); what is left out follows by benchdnn's rules
  ///   64x128:128x256n"name"                  benchdnn: matrix product
  ///   250x64x32x32n"name"                    benchdnn: a tensor
  ///   700 161 1 4 32 20 5 0 0 2 2            DeepBench: w h c n k filter_w filter_h pad_w pad_h stride_w stride_h
  ///   1760 16 1760 0 0                       DeepBench: m n k a_t b_t, column-major
  /// '#' begins a comment; words that begin with '-' are options of benchdnn's and left out; std::make_tuple(...) is
  /// DeepBench's own way to write a line. Throws a sentence that names the line for what is no problem, has nothing to
  /// do, or does not fit together by the op's own rules.
  void read(std::string_view text, const std::string& source, int64_t batch = 0);
  /// The same for a file, which must hold a problem.
  void read_file(const std::string& file, int64_t batch = 0);
};

/// The shapes of alexnet, vgg16 and ResNet-50 that are built into the program.
std::string_view builtin_shapes();

}  // namespace plumb::bench
