#include "kernels/cpu/pooling/pool2d_plan.h"

namespace plumb::cpu::pool {

Extents::Extents(const TensorSpec& x, const TensorSpec& y, const Pool2dParams& p)
    : outer(x.layout == Layout::kNchw ? x.shape[0] * x.shape[1] : x.shape[x.layout == Layout::kNhwc ? 0 : 1]),
      inner(x.layout == Layout::kNchw ? 1 : x.shape[x.layout == Layout::kNhwc ? 1 : 0]),
      IH(x.shape[2]),
      IW(x.shape[3]),
      OH(y.shape[2]),
      OW(y.shape[3]),
      KH(p.kernel[0]),
      KW(p.kernel[1]),
      SH(p.stride[0]),
      SW(p.stride[1]),
      top(p.padding[0]),
      left(p.padding[2]) {}

Plan::Plan(const TensorSpec& x, const TensorSpec& y, const Pool2dParams& p) : Extents(x, y, p) {
  const auto windows_of = [](int64_t extent, int64_t before, int64_t kernel, int64_t stride, int64_t windows) {
    std::vector<Range> of;
    for (int64_t i = 0; i < extent; ++i) {
      of.push_back({ceil_div(i + before - kernel + 1, stride), std::min(windows, (i + before) / stride + 1)});
    }
    return of;
  };
  if (is_squares()) squares = Squares(OW);
  windows_of_row = windows_of(IH, top, KH, SH, OH);
  windows_of_column = windows_of(IW, left, KW, SW, OW);
  std::vector<float> by, inverse;
  for (int64_t height = 1; height <= std::min(KH, IH); ++height) {  // of a window's part inside x
    for (int64_t ow = 0; ow < OW; ++ow) {
      const Range w = columns(ow);
      const int64_t divisor = p.count_include_pad ? KH * KW : height * (w.end - w.begin);
      by.push_back(static_cast<float>(divisor));
      inverse.push_back(1.0f / by.back());
    }
  }
  divisors = std::make_shared<const std::vector<float>>(std::move(by));
  reciprocals = std::make_shared<const std::vector<float>>(std::move(inverse));
}

}  // namespace plumb::cpu::pool
