// Dimensions that an op is told.
#pragma once

#include <concepts>
#include <initializer_list>
#include <span>

#include "shape.h"

namespace plumb {

/// Dimensions of a tensor, negative ones counted from the end: one number, a list of them, or anything that is a span
/// of them. In a reduction none stands for all.
class Dims {
 public:
  Dims() = default;
  Dims(int dim) : Dims({dim}) {}
  Dims(bool) = delete;  // keepdims in the place of dims
  Dims(std::initializer_list<int> dims) : Dims(std::span(dims.begin(), dims.size())) {}
  template <std::convertible_to<std::span<const int>> List>
  Dims(const List& dims) : Dims(std::span<const int>(dims)) {}
  /// Throws where there are more than a tensor can have.
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
