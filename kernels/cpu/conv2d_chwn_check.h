#pragma once
#include "kernels/kernel.h"
namespace plumb::cpu {
inline bool chwn_fits(const TensorSpec& a, const TensorSpec& w, const TensorSpec& c) {
  return a.layout == Layout::kChwn && c.layout == Layout::kChwn && w.layout == Layout::kNchw && a.dtype == w.dtype && c.dtype == w.dtype && (w.dtype == DType::kF32 || w.dtype == DType::kBf16);
}
}
