// Products of matrices whose elements lie anywhere: what convolutions, linear layers and matmul are planned as.
#pragma once

#include "dispatch/kernel.h"
#include "kernels/cuda/divide.h"

namespace plumb::cuda {

/// A dimension that an index of a matrix goes through: its extent, and what one more of it adds to an element's place.
struct Digit {
  int64_t extent = 1, offset = 0;
  int32_t h = 0, w = 0;
};
/// One index of a matrix as up to three digits, innermost first, and what each adds to an element's place.
struct Axis {
  int64_t extent = 1;
  Divisor inner, middle;  // extents of the two inner digits
  int64_t offset[3] = {};
  int32_t h[3] = {}, w[3] = {};

  Axis() = default;
  /// Digits, innermost first.
  explicit Axis(const Digit& a, const Digit& b = {}, const Digit& c = {});
};

/// A matrix of rows and depth that is read. Where it is an image that a window walks over, row and depth together say
/// the height and width at which an element lies, and elements outside of the image are zero.
struct Operand {
  Axis row, depth;
  int64_t first = 0;  // of the element at row 0 and depth 0, height and width 0
  bool is_image = false;
  bool is_depth_first = false;  // neighbours in memory are neighbours in depth
  int32_t first_h = 0, first_w = 0;
  int32_t step_h = 1, step_w = 1;  // heights and widths that no step divides are zero, too
  int32_t image_h = 0, image_w = 0;
  int64_t stride_h = 0, stride_w = 0;
};

/// What is the same for all products of a batch but for where they begin.
struct Batches {
  static constexpr int kMost = 4;
  int64_t count = 1;
  int rank = 0;
  Divisor extent[kMost];  // innermost first
  int64_t a[kMost] = {}, b[kMost] = {}, out[kMost] = {}, bias[kMost] = {};
  void add(int64_t extent, int64_t a, int64_t b, int64_t out, int64_t bias = 0);
};

/// out(m, n) = sum over k of a(m, k) b(n, k), + bias(m), ReLU. The columns n lie in memory as two digits.
struct Gemm {
  Operand a, b;
  Batches batches;
  Divisor column_inner;
  int64_t row_stride = 0, column_stride[2] = {};  // of the inner digit, and of the outer
  bool relu = false;
  constexpr int64_t rows() const { return a.row.extent; }
  constexpr int64_t columns() const { return b.row.extent; }
  constexpr int64_t depth() const { return a.depth.extent; }
};

/// A kernel from the inputs number `a`, `b` and, if it is not negative, `bias`, to output 0, which has no gaps. Of f32,
/// f64 or bf16.
std::unique_ptr<Kernel> gemm_kernel(const char* name, Device device, DType dtype, const Gemm& gemm, int a, int b,
                                    int bias);
/// Its end alone: from sums in f32 (in f64 of f64) where the workspace begins, columns of a row one after another, +
/// bias, ReLU, rounded to output 0.
std::unique_ptr<Kernel> gemm_ending(const char* name, Device device, DType dtype, const Gemm& gemm, int bias);
/// Offers it for the problem's output. There is none of f16.
template <class Params>
void offer_gemm(const char* algorithm, const char* name, const Problem<Params>& p, const Gemm& gemm, int a, int b,
                int bias, Candidates& candidates) {
  if (p.out[0].dtype == DType::kF16) return;
  candidates.add(algorithm, [=, device = p.device, dtype = p.out[0].dtype] {
    return gemm_kernel(name, device, dtype, gemm, a, b, bias);
  });
}

}  // namespace plumb::cuda
