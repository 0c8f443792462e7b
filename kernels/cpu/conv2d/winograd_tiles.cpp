#include "kernels/cpu/conv2d/winograd_tiles.h"

namespace plumb::cpu::winograd {

bool applies(const Conv2dParams& params, const TensorSpec& x, const TensorSpec& w, const TensorSpec& y, int m) {
  if (x.dtype != DType::kF32 && x.dtype != DType::kBf16) return false;
  for (const TensorSpec* s : {&x, &w, &y}) {
    if (s->dtype != x.dtype || s->rank() != 4 || s->shape.numel() == 0) return false;
  }
  if (x.layout != Layout::kNhwc || y.layout != Layout::kNhwc || w.layout != Layout::kNchw) return false;
  for (const int i : {0, 1}) {
    if (params.stride[i] != 1 || params.dilation[i] != 1 || w.shape[2 + i] != 3) return false;
    if (y.shape[2 + i] != x.shape[2 + i] + params.padding[2 * i] + params.padding[2 * i + 1] - 2) return false;
  }
  return params.groups == 1 && (m == 2 || m == 4) && x.shape[0] == y.shape[0] && w.shape[0] == y.shape[1] &&
         w.shape[1] == x.shape[1];
}

}  // namespace plumb::cpu::winograd
