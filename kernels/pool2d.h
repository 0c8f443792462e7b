// Pooling in two dimensions: its parameters and its kernels.
#pragma once

#include "../dispatch/kernel.h"
#include "window.h"

namespace plumb {

/// Attributes of max_pool2d and avg_pool2d. x is (N, C, IH, IW), y is (N, C, OH, OW) with
/// OH = (IH + padding[0] + padding[1] - kernel[0]) / stride[0] + 1, rounded down, and OW likewise.
struct Pool2dParams {
  Size2d kernel = 2;              ///< of the window
  Size2d stride = kKernelSize;    ///< the window's size by default; a kernel is prepared only for explicit strides
  Padding2d padding = 0;          ///< {all}, {height, width} or {top, bottom, left, right}; smaller than the window
  int64_t count_include_pad = 1;  ///< what an average divides by: the whole window (1) or its part inside x (0)
};

/// The same parameters with an explicit stride.
constexpr Pool2dParams with_stride(Pool2dParams p) {
  if (p.stride == kKernelSize) p.stride = p.kernel;
  return p;
}

/// {y} or {y, index} from {x}. index has y's shape and layout: the position (kh * KW + kw) of the maximum in its
/// window, u8 or i32 (pool2d_index_dtype). Padding is -infinity. Among equal maxima the first counts, and among several
/// NaN the last, as in PyTorch.
struct MaxPool2dForward {
  static constexpr char kName[] = "max_pool2d_forward";
  using Params = Pool2dParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

/// dx from {dy, index}: every element of dy is added at the position of its maximum.
struct MaxPool2dBackward {
  static constexpr char kName[] = "max_pool2d_backward";
  using Params = Pool2dParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

/// The elements of g (of x's spec) at the positions of the maxima, from {g, index}: the transpose of the backward
/// kernel.
struct MaxPool2dGather {
  static constexpr char kName[] = "max_pool2d_gather";
  using Params = Pool2dParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

/// y from {x}.
struct AvgPool2dForward {
  static constexpr char kName[] = "avg_pool2d_forward";
  using Params = Pool2dParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

/// dx from {dy}.
struct AvgPool2dBackward {
  static constexpr char kName[] = "avg_pool2d_backward";
  using Params = Pool2dParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

/// The dtype of a position in the window: u8 if it is large enough, else i32.
constexpr DType pool2d_index_dtype(const Pool2dParams& p) {
  return int64_t{p.kernel[0]} * p.kernel[1] <= 255 ? DType::kU8 : DType::kI32;
}

}  // namespace plumb
