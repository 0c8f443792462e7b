// Windows of images in bf16 as rows of a product in AMX's tiles.
#pragma once

#include "kernels/cpu/conv2d/window_panels.h"
#include "kernels/cpu/gemm/amx_panels.h"

namespace plumb::cpu {

/// Windows as rows of a: in each word of the depth two of their taps, which are copied into panels of AMX.
class AmxWindows final : public PanelSource {
 public:
  AmxWindows(const ImageWindows& windows, const Bfloat16* images) : windows_(windows), images_(images) {}
  void pack(float* to, Range lines, Range depths) const override;
  void multiply(int64_t depth, const float* lines, const float* b, const BlocksOfC& to) const override {
    multiply_amx_panel(depth, lines, b, to);
  }

 private:
  const ImageWindows& windows_;
  const Bfloat16* images_;
};

}  // namespace plumb::cpu
