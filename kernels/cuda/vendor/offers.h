// What the vendor's libraries offer beside our own kernels. Builds without them (the emulated device) offer nothing.
#pragma once

#include "kernels/batch_norm.h"
#include "kernels/conv2d.h"
#include "kernels/pool2d.h"

namespace plumb::cuda {

enum class ConvDirection { kForward, kBackwardInput, kBackwardWeight };
struct ConvSpecs {
  TensorSpec x, w, y;
};

/// Those poolings that cuDNN may have plans for.
enum class PoolOperation { kMaxForward, kAvgForward };

/// A matrix of a product as cuBLASLt sees it, columns one after another: what is row-major is transposed to it.
struct LtMatrix {
  size_t input = 0;  ///< which input of the kernel it is
  int64_t rows = 0, columns = 0;
  int64_t stride = 0;  ///< elements to the next of a batch; 0: all the same
};
/// d = op(a) op(b), + bias a row, ReLU or where a mask has ones; d is output 0, and masks are those of
/// LinearForwardMask.
struct LtProduct {
  LtMatrix a, b, d;
  int64_t depth = 0, count = 1;
  bool transpose_a = false, transpose_b = false, relu = false;
  int bias = -1;            ///< the input that is, or -1
  bool gives_bias = false;  ///< output 1 is the sum of op(b) over the depth, which is the gradient by a bias
  int mask = -1;            ///< the input that says where d is not 0, or -1
  bool gives_mask = false;  ///< output 1 says where d is not 0 after ReLU
  bool is_d_f32 = false;    ///< whatever dtype a and b have
};

#ifdef PLUMB_HAS_VENDOR
/// What cuDNN plans for a pooling: without positions of maxima.
void offer_cudnn_pool2d(PoolOperation operation, const Problem<Pool2dParams>& p, Candidates&);
/// What cuDNN plans for batch normalisation in training, with what is added and a ReLU if it has a graph for them, and
/// for its gradients, of which it knows no ReLU.
void offer_cudnn_batch_norm(const Problem<BatchNormParams>& p, Candidates&);
void offer_cudnn_batch_norm_backward(const Problem<BatchNormParams>& p, Candidates&);
/// What cuBLASLt has for a product of f32, f64 or bf16; on a device that is only described one candidate, "cublaslt",
/// that stands for what the device would tell.
void offer_cublaslt(const LtProduct& p, DType dtype, MathMode math, Device device, Candidates&);
/// What cuDNN plans for the problem's device, be it there or only described, in the order of its heuristics.
void offer_cudnn_conv2d(ConvDirection direction, const ConvSpecs& specs, const Problem<Conv2dParams>& p, Candidates&);
#else
inline void offer_cudnn_pool2d(PoolOperation, const Problem<Pool2dParams>&, Candidates&) {}
inline void offer_cudnn_batch_norm(const Problem<BatchNormParams>&, Candidates&) {}
inline void offer_cudnn_batch_norm_backward(const Problem<BatchNormParams>&, Candidates&) {}
inline void offer_cublaslt(const LtProduct&, DType, MathMode, Device, Candidates&) {}
inline void offer_cudnn_conv2d(ConvDirection, const ConvSpecs&, const Problem<Conv2dParams>&, Candidates&) {}
#endif

}  // namespace plumb::cuda
