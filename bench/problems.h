// The problems that are benchmarked, and the reader of their table, bench/problems.txt.
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
  /// Appends the problems of a text, one a line; `source` names the text in messages. A line is an op, a name, the
  /// shapes of its operands, and attributes that are not 1 or, of padding and transposing, 0. Numbers of one thing have
  /// x between; '#' begins a comment:
  ///   conv2d NAME 16x3x224x224 64x3x7x7 stride=2 dilation=1 padding=3x2x3x2 groups=1
  ///   pool2d NAME 16x64x112x112 kernel=3 stride=2 padding=1
  ///   linear NAME 250x1024 8192x1024
  ///   matmul NAME 1760x7000 1760x1760 transpose_a=1 transpose_b=0
  ///   tensor NAME 250x64x30x30
  /// `batch` replaces the first extent of every problem but matrix products, unless it is 0. Throws a sentence that
  /// names the line for what is no problem, has nothing to do, does not fit together by the op's own rules, or has a
  /// name that another of its op has (conv2d and linear count as one).
  void read(std::string_view text, const std::string& source, int64_t batch = 0);
  /// The same for a file, which must hold a problem.
  void read_file(const std::string& file, int64_t batch = 0);
};

/// bench/problems.txt, which is built into the program.
std::string_view builtin_problems();

}  // namespace plumb::bench
