// The dimensions that a caller passes to an op.
#pragma once

#include <concepts>
#include <initializer_list>
#include <span>

#include "shape.h"

namespace plumb {

/// Dimensions of a tensor; negative ones count from the end. Made from one number, a list of numbers, or anything that
/// converts to a span of them. In a reduction, no dimensions means all of them.
class Dims {
 public:
  Dims() = default;
  Dims(int dim) : Dims({dim}) {}
  Dims(bool) = delete;  // a bool here is keepdims in the wrong place
  Dims(std::initializer_list<int> dims) : Dims(std::span(dims.begin(), dims.size())) {}
  template <std::convertible_to<std::span<const int>> List>
  Dims(const List& dims) : Dims(std::span<const int>(dims)) {}
  /// Throws if there are more than a tensor can have.
  Dims(std::span<const int> dims);
  size_t size() const { return size_; }
  const int* begin() const { return dims_; }
  const int* end() const { return dims_ + size_; }
  int operator[](size_t i) const { return dims_[i]; }

 private:
  int dims_[kMaxRank] = {};
  size_t size_ = 0;
};

}  // namespace plumb
