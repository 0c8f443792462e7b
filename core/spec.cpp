#include "core/spec.h"

namespace plumb {

void TensorSpec::refuse_layout() const {
  fail("layout {} is for tensors of rank 4, this one has shape {}; use nchw", layout, shape);
}

std::string to_string(const TensorSpec& s) { return message("{} {} {}", s.dtype, s.shape, s.layout); }

size_t bytes_of(std::span<const TensorSpec> specs) {
  size_t bytes = 0;
  for (const TensorSpec& s : specs) bytes += s.bytes();
  return bytes;
}

DimOrder memory_order(Layout layout, int rank) {
  switch (layout) {
    case Layout::kNhwc: return {{0, 2, 3, 1}};
    case Layout::kChwn: return {{1, 2, 3, 0}};
    default: break;
  }
  DimOrder order;
  for (int i = 0; i < rank; ++i) order.of[i] = static_cast<int8_t>(i);
  return order;
}

Strides strides_of(const TensorSpec& s) {
  PLUMB_CHECK(!is_pack(s.layout), "a pack ({}) has no strides", s.layout);
  const DimOrder order = memory_order(s.layout, s.rank());
  Strides strides;
  int64_t step = 1;
  for (int i = s.rank() - 1; i >= 0; --i) {
    strides.of[order[i]] = step;
    step *= s.shape[order[i]];
  }
  return strides;
}

}  // namespace plumb
