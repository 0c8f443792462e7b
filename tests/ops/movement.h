// What the tests of the ops that move elements share: tensors whose elements are numbered, and plain loops over
// indices.
#pragma once

#include <gtest/gtest.h>

#include <array>

#include "tests/support/compare.h"
#include "tests/support/kernel_check.h"

namespace plumb::test {

inline constexpr DType kDTypes[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBf16,
                                    DType::kI32, DType::kI64, DType::kU8};
using Index = std::array<int64_t, kMaxRank>;

/// Element k in row-major order is k, or k modulo what the dtype can tell apart.
inline Tensor numbered(const TensorSpec& spec) {
  const bool is_narrow = size_of(spec.dtype) <= 2;
  std::vector<double> values(static_cast<size_t>(spec.numel()));
  for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<double>(is_narrow ? k % 251 : k);
  return from_doubles(values, spec);
}

/// Where the element at an index stands in row-major order.
inline int64_t position(const Shape& shape, const Index& index) {
  int64_t at = 0;
  for (int d = 0; d < shape.rank(); ++d) at = at * shape[d] + index[static_cast<size_t>(d)];
  return at;
}

/// The elements of a result whose element at an index is source(index), in row-major order.
template <class Source>
std::vector<double> expected(const Shape& shape, const Source& source) {
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  for (size_t k = 0; k < values.size(); ++k) {
    Index index{};
    for (int64_t d = shape.rank() - 1, rest = static_cast<int64_t>(k); d >= 0; --d) {
      index[static_cast<size_t>(d)] = rest % shape[static_cast<int>(d)];
      rest /= shape[static_cast<int>(d)];
    }
    values[k] = source(index);
  }
  return values;
}

}  // namespace plumb::test
