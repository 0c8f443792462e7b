// Gradients against differences, in f64.
#pragma once

#include <gtest/gtest.h>

#include "tests/support/tensors.h"

namespace plumb::test {

struct GradcheckOptions {
  double step = 1e-6;         ///< of the central difference
  double tolerance = 1e-6;    ///< |analytic - numeric| <= tolerance max(1, |numeric|)
  int64_t samples = 16;       ///< elements of an input that are looked at, if it has more
  bool create_graph = false;  ///< check the gradients that can be differentiated again, which other code may compute
  uint64_t seed = 7;          ///< of the cotangent, which is random: with sum() as loss, wrong indices stay unseen
};

/// The gradients of f with respect to those inputs that require one, against (f(x + h) - f(x - h)) / 2h under a random
/// cotangent. All inputs that require a gradient must be f64, and away from f's kinks by more than the step.
testing::AssertionResult gradcheck(const Function& f, std::span<const Tensor> inputs,
                                   const GradcheckOptions& options = {});
/// The same for the gradients of f as functions of its inputs and of its cotangent: f's second derivatives.
testing::AssertionResult gradgradcheck(const Function& f, std::span<const Tensor> inputs,
                                       const GradcheckOptions& options = {});

}  // namespace plumb::test
