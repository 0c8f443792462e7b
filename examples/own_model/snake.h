// An op of one's own: snake(x) = x + sin(x)^2 (Ziyin, Hartwig, Ueda: Neural networks fail to learn periodic functions,
// 2020).
#pragma once

#include <plumbline.h>

#include <cmath>

// The formulas, for the host and for CUDA.
PLUMB_HOST_DEVICE inline float snake_of(float x) {
  const float s = std::sin(x);
  return x + s * s;
}
PLUMB_HOST_DEVICE inline float slope_of_snake(float x) { return 1 + std::sin(2 * x); }

struct SnakeForward {  // y from {x}
  static constexpr char kName[] = "snake_forward";
  using Params = plumb::NoParams;
  static void cpu(const plumb::Problem<Params>& p, plumb::Candidates& candidates);
  PLUMB_IN_CUDA static void cuda(const plumb::Problem<Params>& p, plumb::Candidates& candidates);
};

struct SnakeBackward {  // dx from {dy, x}
  static constexpr char kName[] = "snake_backward";
  using Params = plumb::NoParams;
  static void cpu(const plumb::Problem<Params>& p, plumb::Candidates& candidates);
  PLUMB_IN_CUDA static void cuda(const plumb::Problem<Params>& p, plumb::Candidates& candidates);
};

/// x of any shape and layout, f32. Keeps x.
plumb::Tensor snake(const plumb::Tensor& x);
