// The cross entropy of softmax probabilities, computed directly from logits.
#pragma once

#include "../dispatch/kernel.h"

namespace plumb {

/// How the losses of the rows are combined.
enum class LossReduction : int32_t { kMean = 0, kSum = 1, kNone = 2 };

struct CrossEntropyParams {
  LossReduction reduction = LossReduction::kMean;
  int32_t reserved = 0;
};

/// {loss, statistics} from {logits (N, K), labels (N) of i64}. loss is (), or (N) for kNone. statistics (N, 2) holds,
/// for each row, its maximum and log sum e^(logit - maximum). run throws Error on a label outside [0, K), since bad
/// data have no loss.
struct CrossEntropyForward {
  static constexpr char kName[] = "cross_entropy_forward";
  using Params = CrossEntropyParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

/// The gradient with respect to the logits, from {dy, logits, labels, statistics}: (softmax - onehot) dy, divided by N
/// for kMean.
struct CrossEntropyBackward {
  static constexpr char kName[] = "cross_entropy_backward";
  using Params = CrossEntropyParams;
  static void reference(const Problem<Params>&, Candidates&);
  static void cpu(const Problem<Params>&, Candidates&);
  PLUMB_IN_CUDA static void cuda(const Problem<Params>&, Candidates&);
};

}  // namespace plumb
