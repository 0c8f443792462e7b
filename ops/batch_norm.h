// Batch normalisation (Ioffe, Szegedy: Batch Normalization, ICML 2015).
#pragma once

#include "../core/convention.h"
#include "../core/tape.h"
#include "../kernels/batch_norm.h"

namespace plumb {

/// A framework's defaults. PyTorch: epsilon 1e-5, momentum 0.1, unbiased running variance. Keras 3: epsilon 1e-3,
/// momentum 0.01 (which it calls 0.99), biased. TensorFlow 1 (fused): as Keras 3, but unbiased.
BatchNormParams batch_norm_defaults(Convention convention, bool train = true);

/// The spec of gamma, beta and the statistics of x: (C), f32 for bf16 x, else of x's dtype. Throws unless x is floating
/// and (N, C) or (N, C, H, W), on epsilon or momentum out of range, and in training on less than two values per
/// channel.
TensorSpec batch_norm_statistics(const BatchNormParams& p, const TensorSpec& x);

/// y = activation((x - mean) / sqrt(var + epsilon) gamma + beta [+ addend]), with one mean, variance, gamma and beta
/// for each channel. x is (N, C) or (N, C, H, W) in any layout, f32, bf16 or f64; the addend is of x's spec; the others
/// are (C), f32 for bf16 x. In training, mean and (biased) variance are the batch's, and the running statistics are
/// updated in place. Otherwise the running statistics are used; they get no gradient. Own kernels do not depend on the
/// number of threads. Keeps x, gamma and the statistics used; for an activation beta, or y behind an addend. Where the
/// activation's input is within roundings of x and the mean of 0, its gradient may be that of either side. Throws as
/// batch_norm_statistics does, and on an addend or parameters of another spec.
Tensor batch_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const Tensor& running_mean,
                  const Tensor& running_var, const BatchNormParams& p = {}, const Tensor& addend = {});

}  // namespace plumb
