// The cross entropy, a loss for classification.
#pragma once

#include "../core/tape.h"
#include "../kernels/cross_entropy.h"

namespace plumb {

/// The spec of the loss. Throws unless logits are floating (N, K), labels are i64 (N), and a mean has at least one row.
TensorSpec cross_entropy_output(const TensorSpec& logits, const TensorSpec& labels, LossReduction reduction);

/// -log softmax(logits)[label], averaged over the rows (shape ()), summed (shape ()), or one loss per row (shape (N)).
/// logits (N, K) of f32, bf16 or f64, labels i64 (N) in [0, K). The loss is f32 for bf16 logits, else of their dtype.
/// Does not depend on the number of threads. Keeps logits, labels and two numbers per row. Throws on a label out of
/// range when the kernel runs (in a captured step: in run()).
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, LossReduction reduction = LossReduction::kMean);

/// The gradient of cross_entropy with respect to the logits: (softmax - onehot) dy, divided by N for the mean. In f32
/// and bf16 a softmax below 2^-126 may be 0.
/// `statistics` (N, 2) come from the forward kernel. Keeps dy, logits, labels and statistics.
Tensor cross_entropy_backward(const Tensor& dy, const Tensor& logits, const Tensor& labels, const Tensor& statistics,
                              LossReduction reduction);

}  // namespace plumb
