// Checks gradients against finite differences, in f64.
#pragma once

#include <gtest/gtest.h>

#include "tests/support/tensors.h"

namespace plumb::test {

struct GradcheckOptions {
  double step = 1e-6;         ///< of the central difference
  double tolerance = 1e-6;    ///< |analytic - numeric| <= tolerance max(1, |numeric|)
  int64_t samples = 4;        ///< the most elements of an input that are checked one by one
  int64_t directions = 2;     ///< random ones, along which all elements of all inputs are checked at once
  bool create_graph = false;  ///< check gradients with create_graph, which other code may compute
  uint64_t seed = 7;          ///< of the random cotangent; with sum() as loss, wrong indices go unnoticed
};

/// Checks the gradients of f with respect to the inputs that require one against (f(x + h) - f(x - h)) / 2h, under a
/// random cotangent. All of these inputs must be f64, and farther than the step from f's kinks.
testing::AssertionResult gradcheck(const Function& f, std::span<const Tensor> inputs,
                                   const GradcheckOptions& options = {});
/// The same for the gradients of f as functions of f's inputs and cotangent: checks f's second derivatives.
testing::AssertionResult gradgradcheck(const Function& f, std::span<const Tensor> inputs,
                                       const GradcheckOptions& options = {});

}  // namespace plumb::test
